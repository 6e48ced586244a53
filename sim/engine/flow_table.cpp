#include "sim/engine/flow_table.h"

#include <algorithm>
#include <cassert>

namespace orrery {

// Adds a flow to the lists of its links. The flow has not joined.
FlowTable::Added FlowTable::attach(std::span<const LinkUse> uses, Rate limit) {
  if (spare.empty()) {
    spare.push_back(static_cast<FlowId>(flows.size()));
    flows.emplace_back();
    speeds.push_back(0);
  }
  Added added{spare.back()};
  spare.pop_back();
  Flow& flow = flows[added.id];
  flow.count = static_cast<std::uint8_t>(uses.size());
  flow.live = true;
  flow.limit = static_cast<Speed>(limit);
  flow.holder = kNobody;
  for (std::uint32_t i = 0; i < uses.size(); ++i) {
    Link& link = links[uses[i].link];
    const std::int64_t weight = uses[i].weight;
    assert(weight >= 0 && weight + link.weight < std::int64_t{1} << 38);
    flow.uses[i] = {uses[i].link, static_cast<std::uint32_t>(link.flows.size()), weight};
    link.flows.push_back({added.id, i});
    link.weight += weight;
    link.weightless += weight == 0 ? 1 : 0;
    link.demand += weight * limit;
    added.tight |= link.demand > link.full;
    added.contested |= link.contested();
  }
  return added;
}

// Gives a flow the rate that the levels of its links allow, and counts it on them.
void FlowTable::join(FlowId id) {
  Flow& flow = flows[id];
  flow.joined = true;
  Rate rate = flow.limit;
  for (const Use& use : flow.all()) rate = std::min(rate, links[use.link].level);
  const Speed speed = speeds[id] = speed_of(rate, flow.limit);
  for (const Use& use : flow.all()) {
    Link& link = links[use.link];
    if (speed == link.level) {
      link.held += use.weight;
    } else {
      link.rest += use.weight * rate;
      link.below = std::max(link.below, static_cast<Speed>(rate));
    }
    if (link.contested()) touch(use.link);
  }
}

// Takes a flow from its links and from their lists; the last flow of each list moves to the free position. Returns
// whether links that can fill are touched.
bool FlowTable::remove(FlowId id) {
  Flow& flow = flows[id];
  const Speed speed = speeds[id];
  bool eased = false;
  for (const Use& use : flow.all()) {
    Link& link = links[use.link];
    if (flow.joined && speed == link.level) {
      link.held -= use.weight;
    } else if (flow.joined) {
      link.rest -= use.weight * rate(id);
    }
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

}  // namespace orrery
