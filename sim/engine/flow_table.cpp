#include "sim/engine/flow_table.h"

#include <algorithm>
#include <cassert>

namespace orrery {

// Adds a flow to the lists of its links, and returns its id. The flow has not joined.
FlowId FlowTable::attach(std::span<const LinkUse> uses, Rate limit) {
  if (spare.empty()) {
    spare.push_back(static_cast<FlowId>(flows.size()));
    flows.emplace_back();
    speeds.push_back(0);
  }
  const FlowId id = spare.back();
  spare.pop_back();
  Flow& flow = flows[id];
  flow.count = static_cast<std::uint8_t>(uses.size());
  flow.live = true;
  flow.limit = static_cast<Speed>(limit);
  flow.holder = kNobody;
  for (std::uint32_t i = 0; i < uses.size(); ++i) {
    Link& link = links[uses[i].link];
    const std::int64_t weight = uses[i].weight;
    assert(weight > 0 && weight + link.weight < std::int64_t{1} << 38);
    flow.uses[i] = {uses[i].link, static_cast<std::uint32_t>(link.flows.size()), weight};
    link.flows.push_back({id, i});
    link.weight += weight;
    link.demand += weight * limit;
  }
  return id;
}

// Takes a flow from the lists of its links; the last flow of each list moves to the free position.
void FlowTable::detach(FlowId id) {
  Flow& flow = flows[id];
  for (const Use& use : flow.all()) {
    Link& link = links[use.link];
    link.weight -= use.weight;
    link.demand -= use.weight * flow.limit;
    const Entry moved = link.flows.back();
    link.flows.pop_back();
    if (use.place == link.flows.size()) continue;
    link.flows[use.place] = moved;
    flows[moved.flow].uses[moved.use].place = use.place;
  }
  flow.live = false;
  spare.push_back(id);
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

// Takes back what join() and later changes of rates have counted.
void FlowTable::leave(FlowId id) {
  Flow& flow = flows[id];
  flow.joined = false;
  const Speed speed = speeds[id];
  for (const Use& use : flow.all()) {
    Link& link = links[use.link];
    if (speed == link.level) {
      link.held -= use.weight;
    } else {
      link.rest -= use.weight * rate(id);
    }
    if (link.contested()) touch(use.link);
  }
}

}  // namespace orrery
