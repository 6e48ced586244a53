#include "sim/engine/fair_share.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace orrery {

LinkId FairShare::add_link(std::int64_t capacity) {
  assert(capacity > 0 && capacity < std::int64_t{1} << 38);
  links_.emplace_back().capacity = capacity;
  return static_cast<LinkId>(links_.size() - 1);
}

FlowId FairShare::add_flow(std::span<const LinkUse> uses, Rate limit) {
  assert(uses.size() <= kMaxUses && limit > 0 && limit <= kFullRate);
  if (spare_.empty()) {
    spare_.push_back(static_cast<FlowId>(flows_.size()));
    flows_.emplace_back();
    marks_.push_back(0);
  }
  const FlowId id = spare_.back();
  spare_.pop_back();
  Flow& flow = flows_[id];
  flow.count = static_cast<std::uint32_t>(uses.size());
  flow.live = true;
  flow.limit = limit;
  bool tight = false;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    Link& link = links_[uses[i].link];
    const std::int64_t weight = uses[i].weight;
    assert(weight >= 0 && weight + link.weight < std::int64_t{1} << 38);
    flow.uses[i] = {uses[i].link, static_cast<std::uint32_t>(link.flows.size()), weight};
    link.flows.push_back(id);
    link.weight += weight;
    link.demand += weight * limit;
    tight |= link.tight();
  }
  flow.rate = tight ? 0 : limit;
  if (tight) new_flows_.push_back(id);
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

// Removes a flow from the list of flows of one of its links; the last flow of the list moves to the free position.
void FairShare::detach(const Use& use) {
  auto& list = links_[use.link].flows;
  const FlowId moved = list.back();
  list.pop_back();
  if (use.place == list.size()) return;
  list[use.place] = moved;
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

// Computes, by progressive filling, the max-min fair rates of all flows that share links with `seed`, directly or
// through other flows, unless this update() has computed them already.
void FairShare::fill_from(FlowId seed) {
  if (marks_[seed] >= growing_mark()) return;
  gather(seed);
  while (stopped_ < region_flows_.size()) {
    const Rate level = find_full_links();
    if (lowest_limit_ <= level) {
      stop_limited(level);
    } else {
      stop_links(level);
    }
  }
}

// Collects the flows that share tight links (links that can fill up) with `seed`, directly or through other flows, and
// collects the tight links too. The rates of the collected flows start from 0.
void FairShare::gather(FlowId seed) {
  region_flows_.clear();
  region_links_.clear();
  stopped_ = 0;
  lowest_limit_ = kFullRate;
  see(seed);
  for (std::size_t i = 0; i < region_flows_.size(); ++i) {  // NOLINT(modernize-loop-convert): the list grows
    const Flow& flow = flows_[region_flows_[i]];
    lowest_limit_ = std::min(lowest_limit_, flow.limit);
    for (const Use& use : flow.all()) {
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
  if (marks_[id] >= growing_mark()) return;
  marks_[id] = growing_mark();
  region_flows_.push_back(id);
}

// Returns the lowest rate at which a link in region_links_ (the links that can slow the flows being computed) becomes
// full, and puts all links that are full at this rate into full_, before the rate of any flow is fixed. Links whose
// flows all have fixed rates are dropped.
Rate FairShare::find_full_links() {
  Rate lowest = std::numeric_limits<Rate>::max();
  std::size_t kept = 0;
  for (const LinkId id : region_links_) {
    Link& link = links_[id];
    if (link.growing == 0) continue;
    region_links_[kept++] = id;
    if (link.level == kUnknown) link.level = link.left / link.growing;
    if (link.level > lowest) continue;
    if (link.level < lowest) full_.clear();
    lowest = link.level;
    full_.push_back(id);
  }
  region_links_.resize(kept);
  return lowest;
}

// Fixes the rates of flows whose own limits are at most `level`, the rate at which the next link would fill up. A flow
// that stops at its limit can only make that link fill up later, so these flows are fixed before the link's flows.
void FairShare::stop_limited(Rate level) {
  lowest_limit_ = kFullRate + 1;
  for (const FlowId id : region_flows_) {
    if (!growing(id)) continue;
    const Rate limit = flows_[id].limit;
    if (limit <= level) {
      stop(id, limit);
    } else {
      lowest_limit_ = std::min(lowest_limit_, limit);
    }
  }
}

void FairShare::stop_links(Rate level) {
  for (const LinkId link : full_) {
    for (const FlowId id : links_[link].flows) {
      if (growing(id)) stop(id, level);
    }
  }
}

void FairShare::stop(FlowId id, Rate rate) {
  Flow& flow = flows_[id];
  ++marks_[id];
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
