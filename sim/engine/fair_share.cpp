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
  table_.holders[added.id] = added.tight ? FlowTable::kWaiting : FlowTable::kNobody;
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

FairShare::Changes FairShare::update() {
  solve();
  std::erase_if(table_.changed, [&](FlowId id) { return table_.holders[id] == table_.flows[id].holder_before; });
  return {table_.releveled, table_.changed};
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
