#include "sim/engine/flow_table.h"

#include <algorithm>
#include <cassert>

namespace orrery {

// Adds a flow to the lists of its links. The flow has not joined.
FlowTable::Added FlowTable::attach(std::span<const LinkUse> uses, Rate limit) {
  if (spare.empty()) {
    spare.push_back(static_cast<FlowId>(flows.size()));
    flows.emplace_back();
    holders.push_back(kWaiting);
  }
  Added added{spare.back()};
  spare.pop_back();
  Flow& flow = flows[added.id];
  flow.count = static_cast<std::uint8_t>(uses.size());
  flow.live = true;
  flow.limit = static_cast<Speed>(limit);
  holders[added.id] = kWaiting;
  for (std::uint32_t i = 0; i < uses.size(); ++i) {
    Link& link = links[uses[i].link];
    const std::int64_t weight = uses[i].weight;
    assert(weight >= 0 && weight + link.weight < std::int64_t{1} << 38);
    flow.uses[i] = {uses[i].link, static_cast<std::uint32_t>(link.flows.size()), weight};
    link.flows.push_back({added.id, i, weight});
    link.weight += weight;
    link.weightless += weight == 0 ? 1 : 0;
    link.demand += weight * limit;
    added.tight |= link.demand > link.full;
    added.contested |= link.contested();
  }
  return added;
}

// Gives a flow the holder that the levels of its links say, and counts it on them.
void FlowTable::join(FlowId id) {
  Flow& flow = flows[id];
  flow.joined = true;
  Rate rate = flow.limit;
  holders[id] = kNobody;
  for (const Use& use : flow.all()) {
    if (links[use.link].level >= rate) continue;
    rate = links[use.link].level;
    holders[id] = use.link;
  }
  count(id);
}

void FlowTable::count(FlowId id, LinkId except) {
  const Flow& flow = flows[id];
  const LinkId holder = holders[id];
  const Rate now = rate(id);
  Link* const by = holder == kNobody ? nullptr : &links[holder];
  for (const Use& use : flow.all()) {
    Link& link = links[use.link];
    if (by == &link) {
      link.own += use.weight;
      link.least_limit = std::min(link.least_limit, flow.limit);
    } else if (by != nullptr && by->fanned) {
      by->fans.add(use.link, use.weight);
    }
    if (use.link == except) continue;
    if (by != nullptr && link.level == now) {
      link.held += use.weight;
    } else {
      link.rest += use.weight * now;
      link.below = std::max(link.below, static_cast<Speed>(now));
    }
    if (link.contested()) touch(use.link);
  }
}

void FlowTable::discount(FlowId id, LinkId except) {
  const LinkId holder = holders[id];
  const Rate now = rate(id);
  Link* const by = holder == kNobody ? nullptr : &links[holder];
  for (const Use& use : flows[id].all()) {
    Link& link = links[use.link];
    if (by == &link) {
      link.own -= use.weight;
    } else if (by != nullptr && by->fanned) {
      by->fans.take(use.link, use.weight);
    }
    if (use.link == except) continue;
    if (by != nullptr && link.level == now) {
      link.held -= use.weight;
    } else {
      link.rest -= use.weight * now;
    }
  }
  holders[id] = kWaiting;
}

void FlowTable::fan_out(LinkId id) {
  Link& link = links[id];
  if (link.fanned) return;
  link.fanned = true;
  for (const Entry entry : link.flows) {
    if (holders[entry.flow] != id) continue;
    for (const Use& use : flows[entry.flow].all()) {
      if (use.link != id) link.fans.add(use.link, use.weight);
    }
  }
}

// Takes a flow from its links and from their lists; the last flow of each list moves to the free position. Returns
// whether links that can fill are touched.
bool FlowTable::remove(FlowId id) {
  Flow& flow = flows[id];
  bool eased = false;
  if (flow.joined) discount(id);
  for (const Use& use : flow.all()) {
    Link& link = links[use.link];
    if (flow.joined && link.contested()) {
      touch(use.link);
      eased = true;
    }
    link.weight -= use.weight;
    link.weightless -= use.weight == 0 ? 1 : 0;
    link.demand -= use.weight * flow.limit;
    const Entry moved = link.flows.back();
    link.flows.pop_back();
    if (use.place == link.flows.size()) continue;
    link.flows[use.place] = moved;
    flows[moved.flow].uses[moved.use].place = use.place;
  }
  flow.joined = false;
  flow.live = false;
  spare.push_back(id);
  return eased;
}

// Lets a flow that stands for `from` equal flows stand for `to` of them. Links that can fill are touched.
void FlowTable::resize(FlowId id, std::int64_t from, std::int64_t to) {
  Flow& flow = flows[id];
  const LinkId holder = holders[id];
  const Rate now = rate(id);
  Link* const by = holder < kWaiting ? &links[holder] : nullptr;
  for (Use& use : std::span(flow.uses.data(), flow.count)) {
    Link& link = links[use.link];
    const bool contested = link.contested();
    const std::int64_t more = use.weight / from * (to - from);
    use.weight += more;
    link.flows[use.place].weight += more;
    link.weight += more;
    link.demand += more * flow.limit;
    assert(link.weight < std::int64_t{1} << 38);
    if (!flow.joined) continue;
    if (by == &link) {
      link.own += more;
    } else if (by != nullptr && by->fanned) {
      by->fans.change(use.link, more);
    }
    if (by != nullptr && link.level == now) {
      link.held += more;
    } else {
      link.rest += more * now;
    }
    if (contested || link.contested()) touch(use.link);
  }
}

}  // namespace orrery
