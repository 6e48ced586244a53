#include "sim/fair_share.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace orrery {

LinkId FairShare::add_link(std::int64_t capacity) {
  assert(capacity > 0 && capacity < std::int64_t{1} << 38);
  links_.emplace_back().capacity = capacity;
  return static_cast<LinkId>(links_.size() - 1);
}

FlowId FairShare::add_flow(std::span<const LinkUse> uses, Rate limit, std::int64_t multiplicity) {
  assert(uses.size() <= kMaxUses && limit > 0 && limit <= kFullRate && multiplicity > 0);
  if (spare_.empty()) {
    spare_.push_back(static_cast<FlowId>(flows_.size()));
    flows_.emplace_back();
  }
  const FlowId id = spare_.back();
  spare_.pop_back();
  Flow& flow = flows_[id];
  flow.count = static_cast<std::uint32_t>(uses.size());
  flow.live = true;
  flow.limit = limit;
  flow.rate = 0;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    Link& link = links_[uses[i].link];
    const std::int64_t weight = uses[i].weight * multiplicity;
    assert(weight > 0 && weight + link.weight < std::int64_t{1} << 38);
    flow.uses[i] = {uses[i].link, static_cast<std::uint32_t>(link.flows.size()), weight};
    link.flows.push_back(id);
    link.weight += weight;
    link.demand += weight * limit;
  }
  new_flows_.push_back(id);
  return id;
}

void FairShare::remove_flow(FlowId id) {
  Flow& flow = flows_[id];
  assert(flow.live);
  for (const Use& use : flow.all()) {
    Link& link = links_[use.link];
    if (link.tight()) eased_links_.push_back(use.link);
    link.weight -= use.weight;
    link.demand -= use.weight * flow.limit;
    detach(use);
  }
  flow.live = false;
  spare_.push_back(id);
}

// Takes a flow off its link's list; the last one moves to its place.
void FairShare::detach(const Use& use) {
  auto& list = links_[use.link].flows;
  const FlowId moved = list.back();
  list[use.place] = moved;
  list.pop_back();
  for (Use& u : std::span(flows_[moved].uses).first(flows_[moved].count)) {
    if (u.link == use.link) u.place = use.place;
  }
}

std::span<const FlowId> FairShare::update() {
  changed_.clear();
  ++visit_;
  for (const FlowId id : new_flows_) {
    if (flows_[id].live) fill_from(id);
  }
  for (const LinkId link : eased_links_) {
    for (const FlowId id : links_[link].flows) fill_from(id);
  }
  new_flows_.clear();
  eased_links_.clear();
  return changed_;
}

// Progressive filling of the region around a flow, unless it has been done in this update.
void FairShare::fill_from(FlowId seed) {
  if (flows_[seed].seen == visit_) return;
  gather(seed);
  while (stopped_ < region_flows_.size()) {
    const Rate level = lowest_level();
    if (lowest_limit_ <= level) {
      stop_limited(level);
    } else {
      stop_links(level);
    }
  }
}

// The flows connected with the seed through tight links, and these links, all growing from rate 0.
void FairShare::gather(FlowId seed) {
  region_flows_.clear();
  region_links_.clear();
  stopped_ = 0;
  lowest_limit_ = kFullRate;
  see(seed);
  for (std::size_t i = 0; i < region_flows_.size(); ++i) {
    for (const Use& use : flows_[region_flows_[i]].all()) {
      Link& link = links_[use.link];
      if (link.seen == visit_ || !link.tight()) continue;
      link.seen = visit_;
      link.left = link.capacity * kFullRate;
      link.growing = link.weight;
      link.level = kUnknown;
      region_links_.push_back(use.link);
      for (const FlowId id : link.flows) see(id);
    }
  }
}

void FairShare::see(FlowId id) {
  Flow& flow = flows_[id];
  if (flow.seen == visit_) return;
  flow.seen = visit_;
  flow.growing = true;
  lowest_limit_ = std::min(lowest_limit_, flow.limit);
  region_flows_.push_back(id);
}

// The rate at which the next link of the region fills.
Rate FairShare::lowest_level() {
  Rate lowest = std::numeric_limits<Rate>::max();
  for (const LinkId id : region_links_) {
    Link& link = links_[id];
    if (link.growing == 0) continue;
    if (link.level == kUnknown) link.level = link.left / link.growing;
    lowest = std::min(lowest, link.level);
  }
  return lowest;
}

// Stops the flows that reach their limits before any link fills. Each of them only makes links fill later.
void FairShare::stop_limited(Rate level) {
  lowest_limit_ = kFullRate + 1;
  for (const FlowId id : region_flows_) {
    const Flow& flow = flows_[id];
    if (!flow.growing) continue;
    if (flow.limit <= level) {
      stop(id, flow.limit);
    } else {
      lowest_limit_ = std::min(lowest_limit_, flow.limit);
    }
  }
}

// Stops the flows of all links that fill at this level; which these are is settled before any flow is stopped.
void FairShare::stop_links(Rate level) {
  full_.clear();
  for (const LinkId id : region_links_) {
    if (links_[id].growing > 0 && links_[id].level == level) full_.push_back(id);
  }
  for (const LinkId link : full_) {
    for (const FlowId id : links_[link].flows) {
      if (flows_[id].growing) stop(id, level);
    }
  }
}

void FairShare::stop(FlowId id, Rate rate) {
  Flow& flow = flows_[id];
  flow.growing = false;
  ++stopped_;
  if (flow.rate != rate) changed_.push_back(id);
  flow.rate = rate;
  for (const Use& use : flow.all()) {
    Link& link = links_[use.link];
    link.left -= use.weight * rate;
    link.growing -= use.weight;
    link.level = kUnknown;
  }
}

}  // namespace orrery
