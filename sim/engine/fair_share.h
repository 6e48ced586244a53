#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/filling.h"
#include "sim/engine/flow_table.h"
#include "sim/engine/levels.h"

namespace orrery {

// Max-min fair rates of flows over links, as mathematics: no time, no bytes, no topology. The rates of all flows grow
// equally until a flow reaches its own limit or a link is full; then the rate of that flow, or of all flows of that
// link, is fixed, and the rates of the other flows grow on (progressive filling; Bertsekas and Gallager, Data Networks,
// 1992, section 6.5.2). A flow may stand for several equal flows: its weight on a link is the sum over the flows that
// cross the link, and its rate is the rate of one such flow.
//
// Rates are whole numbers, rounded down where a link fills, and flows of links that fill at the same rate stop to grow
// together. So the rates depend on the set of flows alone: not on the order of calls, nor on whether equal flows are
// merged, nor on whether update() fills from nothing (Filling) or passes on what has changed (Levels). A link that
// could serve all its flows at their limits never slows them and is skipped.
//
// Shares are equal in rate. For shares equal in bandwidth, give flows the same weight and their nominal bandwidth as
// limit: two flows that would each take 95 % of a link of capacity 100 as {weight 100, limit 0.95} get half of it each.
class FairShare {
 public:
  static constexpr std::size_t kMaxUses = FlowTable::kMaxUses;

  FairShare() : levels_(table_), filling_(table_) {}
  FairShare(const FairShare&) = delete;
  FairShare& operator=(const FairShare&) = delete;

  // Adds a link. Its capacity must be above 0; the capacity, and the sum of the weights of the link's flows, must be
  // below 2^38, so that capacities should be in kB/s rather than B/s.
  LinkId add_link(std::int64_t capacity);

  // Adds a flow over at most kMaxUses different links, 0 < limit <= kFullRate. Ids of removed flows are used again. If
  // the flow's links have capacity for all their flows, its rate is its limit at once and it slows no other flow; else
  // its rate is 0 until update().
  FlowId add_flow(std::span<const LinkUse> uses, Rate limit = kFullRate);

  void remove_flow(FlowId id);

  // Lets a flow that stands for `from` equal flows stand for `to` of them, both above 0: its weights become `to` /
  // `from` of what they are. Rates may change with the next update().
  void resize_flow(FlowId id, std::int64_t from, std::int64_t to) { table_.resize(id, from, to); }

  // Returns whether flows added or removed since the last update() can have changed rates.
  bool stale() const { return !new_flows_.empty() || !table_.touched.empty(); }

  // The changes of an update. The rate of a flow may have changed if it is among `flows`, or if one of `links` is its
  // holder; so a caller can keep one clock for all flows that a link holds. The spans are valid until the next
  // update().
  struct Changes {
    std::span<const LinkId> links;  // links whose levels may have changed
    std::span<const FlowId> flows;  // new flows, and flows that have another holder than before
  };
  // Recomputes the rates that flows added or removed since the last update() can have changed.
  Changes update();

  Rate rate(FlowId id) const { return table_.rate(id); }
  // Returns a link whose level is the rate of the flow, or FlowTable::kNobody if the flow is as fast as its limit.
  LinkId holder(FlowId id) const { return table_.holders[id]; }
  // Flows and links as they are since the last update.
  const FlowTable& table() const { return table_; }
  // Returns the rate of the flows that a link holds; FlowTable::kNever if the link is not full.
  Rate level(LinkId id) const { return table_.links[id].level; }

 private:
  void solve();

  FlowTable table_;
  Levels levels_;
  Filling filling_;
  std::vector<FlowId> new_flows_;  // flows added since the last update that could not join at once
  std::size_t left_flows_ = 0;     // number of flows that have left links that can fill since the last update
  std::size_t uses_ = 0;           // number of uses of links by all flows
};

}  // namespace orrery
