#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/engine/fans.h"
#include "sim/engine/rate.h"

namespace orrery {

// How much of a link's capacity (weight) a flow takes at full rate, in the unit of the capacity. If a flow stands for
// several equal flows, weight is the sum over these. A flow of weight 0 loads the link with nothing, but grows no
// further than the link's other flows once the link is full.
struct LinkUse {
  LinkId link = 0;
  std::int64_t weight = 0;
};

// Flows, links and their rates as FairShare keeps them between two updates. The level of a link is the rate at which it
// fills; the rate of a flow that has joined is the least of its limit and the levels of its links. A link holds the
// flows whose rate is its level and below their limits; a flow whose links have equal levels is held by each of them,
// and one of these is its holder. The table keeps no rates of flows, but their holders, so that a change of a link's
// level changes the rates of all flows of which the link is the holder. It decides no level: Filling and Levels do.
struct FlowTable {
  static constexpr std::size_t kMaxUses = 8;
  static constexpr Rate kNever = std::numeric_limits<Rate>::max();  // level of a link that does not fill
  static constexpr LinkId kNobody = UINT32_MAX;                     // holder of a flow that is as fast as its limit
  static constexpr LinkId kWaiting = UINT32_MAX - 1;  // holder of a flow that has not joined and does not run yet

  // a flow of a link, and the index in Flow::uses and the weight of its use of the link
  struct Entry {
    FlowId flow = 0;
    std::uint32_t use = 0;
    std::int64_t weight = 0;
  };

  // A change of a level is passed on to many links: what it reads and writes of each stands in one line of a cache.
  struct alignas(64) Link {
    Rate level = kNever;
    std::int64_t held = 0;  // sum of the weights of the flows that the link holds
    // sum of weight times rate over the link's joined flows that the link does not hold
    std::int64_t rest = 0;
    std::int64_t full = 0;              // capacity times kFullRate
    std::int64_t weight = 0;            // sum of the weights of the link's flows
    std::int64_t demand = 0;            // sum of weight times limit over the link's flows
    std::int32_t below = 0;             // upper bound of the rates of the joined flows that the link does not hold
    std::uint32_t queued = UINT32_MAX;  // key by which Levels has queued the link; UINT32_MAX if it has not
    std::int32_t weightless = 0;        // number of the link's flows of weight 0
    bool touched = false;               // whether the link is in FlowTable::touched
    bool fanned = false;                // whether `fans` counts the flows of which the link is the holder

    std::int64_t own = 0;                  // sum of the weights of the flows of which the link is the holder
    std::int32_t least_limit = kFullRate;  // lower bound of the limits of the flows of which the link is the holder
    std::uint32_t changed_in = 0;          // number of the last update that changed the level
    std::vector<Entry> flows;
    Fans fans;

    // Returns whether the link can fill, or is yet to be updated after it could.
    bool contested() const { return demand > full || level != kNever; }

    // Returns the rate at which the link fills if the flows that it does not hold have stopped: the whole part of (full
    // - rest) / held, of which rest may not be above full, nor held 0.
    Rate room_each() const { return quotient(full - rest, held); }
  };

  struct Use {
    LinkId link;
    std::uint32_t place;  // index of the flow in Link::flows
    std::int64_t weight;
  };

  using Speed = std::int32_t;  // a rate up to kFullRate

  struct Flow {
    Speed limit = 0;
    LinkId holder_before = kWaiting;  // holder before the update that `changed_in` numbers
    std::uint32_t changed_in = 0;     // number of the last update that may have changed the holder
    std::uint8_t count = 0;
    bool live = false;
    bool joined = false;  // whether held and rest of the flow's links count the flow
    std::array<Use, kMaxUses> uses;

    std::span<const Use> all() const { return {uses.data(), count}; }
  };

  Rate rate(FlowId id) const {
    const LinkId holder = holders[id];
    if (holder < kWaiting) return links[holder].level;
    return holder == kNobody ? flows[id].limit : 0;
  }

  // Returns the whole part of a / b for 0 <= a < 2^62, 0 < b: a division of doubles, which takes less time than one of
  // integers, mended by at most one where the quotient is below 2^50. Greater quotients need not be exact here, since
  // no flow is faster than kFullRate.
  static std::int64_t quotient(std::int64_t a, std::int64_t b) {
    auto q = static_cast<std::int64_t>(static_cast<double>(a) / static_cast<double>(b));
    const std::int64_t left = a - q * b;
    q += left >= b ? 1 : 0;
    return q - (left < 0 ? 1 : 0);
  }

  struct Added {
    FlowId id = 0;
    bool tight = false;      // whether one of the flow's links cannot serve all its flows at their limits
    bool contested = false;  // whether one of the flow's links is contested()
  };
  Added attach(std::span<const LinkUse> uses, Rate limit);
  void join(FlowId id);
  bool remove(FlowId id);
  void resize(FlowId id, std::int64_t from, std::int64_t to);

  // Count a flow that has joined on its links, by its holder, or no longer; it has no holder then. What `except` holds
  // and what its other flows take is left to the caller. Links that can fill are touched when a flow is counted.
  void count(FlowId id, LinkId except = kNobody);
  void discount(FlowId id, LinkId except = kNobody);
  // Counts the flows of which a link is the holder by the other links that they cross, if that is yet to be done.
  void fan_out(LinkId id);

  // Begins an update, which nothing has changed yet. After 2^32 updates their numbers begin again.
  void begin_update() {
    changed.clear();
    releveled.clear();
    if (++update != 0) return;
    for (Link& link : links) link.changed_in = 0;
    for (Flow& flow : flows) flow.changed_in = 0;
    update = 1;
  }

  void touch(LinkId id) {
    if (links[id].touched) return;
    links[id].touched = true;
    touched.push_back(id);
  }

  // Gives a link another level, and notes that the update has.
  void set_level(LinkId id, Rate level) {
    Link& link = links[id];
    if (link.changed_in != update) {
      link.changed_in = update;
      releveled.push_back(id);
    }
    link.level = level;
  }

  // Notes that an update may change the holder of a flow, before it does.
  void note(FlowId id) {
    Flow& flow = flows[id];
    if (flow.changed_in == update) return;
    flow.changed_in = update;
    flow.holder_before = holders[id];
    changed.push_back(id);
  }

  // Returns how fast a flow would be if `link` did not slow it.
  Rate without(const Flow& flow, LinkId link) const {
    Rate rate = flow.limit;
    for (const Use& use : flow.all()) {
      if (use.link != link && links[use.link].level < rate) rate = links[use.link].level;
    }
    return rate;
  }

  std::vector<Link> links;
  std::vector<Flow> flows;
  std::vector<LinkId> holders;    // for each flow, a link that holds it, kNobody or kWaiting
  std::vector<FlowId> spare;      // ids of flows that are no longer there
  std::vector<LinkId> touched;    // links whose levels may be wrong since flows came, left or changed their rates
  std::vector<FlowId> changed;    // flows whose holders the current update has changed, if only for a while
  std::vector<LinkId> releveled;  // links whose levels the current update has changed, if only for a while
  std::uint32_t update = 0;       // number of the current update, counted from the first
};

}  // namespace orrery
