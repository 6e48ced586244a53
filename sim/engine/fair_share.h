#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace orrery {

using LinkId = std::uint32_t;
using FlowId = std::uint32_t;
using Rate = std::int64_t;  // rate of a flow, in units of 1/2^24 of its full speed

inline constexpr Rate kFullRate = Rate{1} << 24;

// How much of a link's capacity (weight) a flow takes at full rate, in the unit of the capacity. If a flow stands for
// several equal flows, weight is the sum over these. A flow of weight 0 loads the link with nothing, but grows no
// further than the link's other flows once the link is full.
struct LinkUse {
  LinkId link = 0;
  std::int64_t weight = 0;
};

// Max-min fair rates of flows over links, as mathematics: no time, no bytes, no topology. The rates of all flows grow
// equally until a flow reaches its own limit or a link is full; then the rate of that flow, or of all flows of that
// link, is fixed, and the rates of the other flows grow on (progressive filling; Bertsekas and Gallager, Data Networks,
// 1992, section 6.5.2). A flow may stand for several equal flows: its weight on a link is the sum over the flows that
// cross the link, and its rate is the rate of one such flow.
//
// Rates are whole numbers, rounded down where a link fills, and flows of links that fill at the same rate stop to grow
// together. So the rates depend on the set of flows alone: not on the order of calls, nor on whether equal flows are
// merged, nor on which flows update() visits. A link that could serve all its flows at their limits never slows them
// and is skipped.
//
// Shares are equal in rate. For shares equal in bandwidth, give flows the same weight and their nominal bandwidth as
// limit: two flows that would each take 95 % of a link of capacity 100 as {weight 100, limit 0.95} get half of it each.
class FairShare {
 public:
  static constexpr std::size_t kMaxUses = 8;

  // Adds a link. Its capacity must be above 0; the capacity, and the sum of the weights of the link's flows, must be
  // below 2^38, so that capacities should be in kB/s rather than B/s.
  LinkId add_link(std::int64_t capacity);

  // Adds a flow over at most kMaxUses different links, 0 < limit <= kFullRate. Ids of removed flows are used again. If
  // the flow's links have capacity for all their flows, its rate is its limit at once and it slows no other flow; else
  // its rate is 0 until update().
  FlowId add_flow(std::span<const LinkUse> uses, Rate limit = kFullRate);

  void remove_flow(FlowId id);

  // Returns whether flows added or removed since the last update() can have changed rates.
  bool stale() const { return !new_flows_.empty() || !eased_links_.empty(); }

  // Recomputes the rates that flows added or removed since the last update() can have changed. Returns the flows whose
  // rates have changed; the span is valid until the next update().
  std::span<const FlowId> update();

  Rate rate(FlowId id) const { return flows_[id].rate; }

 private:
  static constexpr Rate kUnknown = -1;

  struct Link {
    std::int64_t capacity = 0;
    std::int64_t weight = 0;  // sum of the weights of the link's flows
    std::int64_t demand = 0;  // sum of weight times limit over the link's flows
    std::vector<FlowId> flows;
    std::uint64_t seen = 0;
    // The fields below are used while update() computes rates.
    std::int64_t left = 0;     // capacity, times kFullRate, that flows with a fixed rate leave free
    std::int64_t growing = 0;  // sum of the weights of the link's flows whose rate still grows
    Rate level = 0;            // rate at which the link fills

    bool tight() const { return demand > capacity * kFullRate; }
  };

  struct Use {
    LinkId link;
    std::uint32_t place;  // index of the flow in Link::flows
    std::int64_t weight;
  };

  struct Flow {
    std::array<Use, kMaxUses> uses;
    std::uint32_t count = 0;
    bool live = false;
    Rate limit = 0;
    Rate rate = 0;

    std::span<const Use> all() const { return {uses.data(), count}; }
  };

  // Returns the mark (in marks_) of flows that take part in the current update() and whose rate still grows. Flows
  // whose rate has been fixed have this mark plus one; flows that this update() has not visited have a lower mark.
  std::uint64_t growing_mark() const { return 2 * visit_; }
  bool growing(FlowId id) const { return marks_[id] == growing_mark(); }

  void detach(const Use& use);
  void fill_from(FlowId seed);
  void gather(FlowId seed);
  void see(FlowId id);
  Rate find_full_links();
  void stop_limited(Rate level);
  void stop_links(Rate level);
  void stop(FlowId id, Rate rate);

  std::vector<Link> links_;
  std::vector<Flow> flows_;
  // for each flow, how far the current update() is with it: not visited, rate still growing, or rate fixed
  // (growing_mark()). The marks are kept outside flows_, so that skipping a visited flow is cheap.
  std::vector<std::uint64_t> marks_;
  std::vector<FlowId> spare_;
  std::vector<FlowId> new_flows_;  // flows added since the last update
  // links that could fill up and from which flows were removed since the last update
  std::vector<LinkId> eased_links_;
  std::vector<FlowId> changed_;
  std::uint64_t visit_ = 0;           // number of the current update, counted from the first
  std::vector<FlowId> region_flows_;  // flows whose rates are being computed: connected by links that can fill up
  std::vector<LinkId> region_links_;
  std::vector<LinkId> full_;  // links that are full at the rate that the growing flows have reached
  std::size_t stopped_ = 0;   // number of flows in region_flows_ (being computed) whose rates are fixed
  Rate lowest_limit_ = 0;     // lower bound of the limits of all flows whose rate still grows
};

}  // namespace orrery
