#include "sim/engine/fair_share.h"

#include <algorithm>
#include <cassert>

namespace orrery {
namespace {

// So many flows of links may Levels look at for each use of a link by a flow before all is filled from nothing. Filling
// looks at each use twice; the bound is above that, since most updates that come near it end below it.
constexpr std::size_t kLooksPerUse = 4;

}  // namespace

LinkId FairShare::add_link(std::int64_t capacity) {
  assert(capacity > 0 && capacity < std::int64_t{1} << 38);
  table_.links.emplace_back().full = capacity * kFullRate;
  return static_cast<LinkId>(table_.links.size() - 1);
}

FlowId FairShare::add_flow(std::span<const LinkUse> uses, Rate limit) {
  assert(uses.size() <= kMaxUses && limit > 0 && limit <= kFullRate);
  const FlowTable::Added added = table_.attach(uses, limit);
  uses_ += uses.size();
  table_.speeds[added.id] = FlowTable::speed_of(added.tight ? 0 : limit, limit);
  if (added.contested) {
    new_flows_.push_back(added.id);
  } else {
    table_.join(added.id);
  }
  return added.id;
}

void FairShare::remove_flow(FlowId id) {
  const FlowTable::Flow& flow = table_.flows[id];
  assert(flow.live);
  uses_ -= flow.count;
  if (table_.remove(id)) ++left_flows_;
}

std::span<const FlowId> FairShare::update() {
  assert(!by_holders_);
  by_flows_ = true;
  solve();
  std::erase_if(table_.changed, [&](FlowId id) { return table_.rate(id) == table_.flows[id].before; });
  return table_.changed;
}

FairShare::Holders FairShare::update_holders() {
  assert(!by_flows_);
  by_holders_ = true;
  solve();
  std::erase_if(table_.changed, [&](FlowId id) { return !change_holder(id); });
  return {table_.releveled, table_.changed};
}

// Finds a link that holds a flow, and returns whether it is another than before, or the flow is held by none.
bool FairShare::change_holder(FlowId id) {
  FlowTable::Flow& flow = table_.flows[id];
  const FlowTable::Speed speed = table_.speeds[id];
  if (flow.holder != FlowTable::kNobody && table_.links[flow.holder].level == speed) return false;
  flow.holder = FlowTable::kNobody;
  for (const FlowTable::Use& use : flow.all()) {
    if (table_.links[use.link].level == speed) flow.holder = use.link;
  }
  return true;
}

// Finds the rates after flows were added and removed.
void FairShare::solve() {
  table_.begin_update();
  // Most rates have to be found again if a quarter of the flows came or left.
  const std::size_t flows = table_.flows.size() - table_.spare.size();
  if (4 * (new_flows_.size() + left_flows_) > flows) {
    filling_.fill_touched(new_flows_);
  } else {
    for (const FlowId id : new_flows_) {
      if (!table_.flows[id].live || table_.flows[id].joined) continue;
      table_.note(id);
      table_.join(id);
    }
    if (!levels_.settle(kLooksPerUse * uses_)) filling_.fill_touched({});
  }
  new_flows_.clear();
  left_flows_ = 0;
}

}  // namespace orrery
