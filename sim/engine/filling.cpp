#include "sim/engine/filling.h"

#include <algorithm>
#include <functional>

namespace orrery {
namespace {

// A link that may fill at `level` as a key of a heap; no flow grows beyond kFullRate.
std::uint64_t heap_key(Rate level, LinkId id) {
  return static_cast<std::uint64_t>(std::min(level, kFullRate + 1)) << 32 | id;
}

}  // namespace

void Filling::fill_touched(std::span<const FlowId> new_flows) {
  growth_.resize(table_.links.size());
  marks_.resize(table_.flows.size());
  taken_.resize(table_.flows.size());
  ++visit_;
  for (const FlowId id : new_flows) {
    if (table_.flows[id].live && !table_.flows[id].joined) fill_from(id);
  }
  for (const LinkId link : table_.touched) {
    for (const FlowTable::Entry entry : table_.links[link].flows) fill_from(entry.flow);
  }
  for (const LinkId id : table_.touched) {
    FlowTable::Link& link = table_.links[id];
    link.touched = false;
    if (link.flows.empty() && link.level != FlowTable::kNever) table_.set_level(id, FlowTable::kNever);
  }
  table_.touched.clear();
}

// Computes the rates of all flows that share links with `seed`, directly or through other flows, unless this filling
// has computed them already.
void Filling::fill_from(FlowId seed) {
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
  close();
}

// Collects the flows that share links that can fill with `seed`, directly or through other flows, and these links. The
// rates of the collected flows start from 0.
void Filling::gather(FlowId seed) {
  region_flows_.clear();
  region_links_.clear();
  heap_.clear();
  full_.clear();
  stopped_ = 0;
  sorted_ = false;
  limited_ = 0;
  lowest_limit_ = kFullRate;
  see(seed);
  for (std::size_t i = 0; i < region_flows_.size(); ++i) {  // NOLINT(modernize-loop-convert): the list grows
    const FlowTable::Flow& flow = table_.flows[region_flows_[i]];
    lowest_limit_ = std::min<Rate>(lowest_limit_, flow.limit);
    for (const FlowTable::Use& use : flow.all()) {
      Growth& growth = growth_[use.link];
      FlowTable::Link& link = table_.links[use.link];
      if (growth.seen == visit_ || !link.contested()) continue;
      growth = {link.full, link.weight, visit_};
      for (const FlowTable::Entry entry : link.flows) see(entry.flow);
      table_.set_level(use.link, FlowTable::kNever);
      link.below = 0;
      link.own = 0;
      link.least_limit = kFullRate;
      link.fanned = false;
      link.fans.clear();
      region_links_.push_back(use.link);
      if (link.weight > 0) heap_.push_back(heap_key(link.full / link.weight, use.link));
    }
  }
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
}

void Filling::see(FlowId id) {
  if (marks_[id] >= growing_mark()) return;
  marks_[id] = growing_mark();
  table_.note(id);
  taken_[id] = static_cast<FlowTable::Speed>(table_.flows[id].joined ? table_.rate(id) : 0);
  region_flows_.push_back(id);
}

// Returns the lowest rate at which a link of the region becomes full, and puts all links that are full at this rate
// into full_, before the rate of any flow is fixed. Levels only rise while flows stop, so that a link's key in the heap
// is a lower bound of its level.
Rate Filling::find_full_links() {
  full_.clear();
  Rate lowest = kFullRate + 1;
  while (!heap_.empty()) {
    const auto id = static_cast<LinkId>(heap_.front());
    const auto bound = static_cast<Rate>(heap_.front() >> 32);
    if (bound > lowest) break;
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    const Growth& growth = growth_[id];
    if (growth.growing == 0) continue;
    const Rate level = std::min(growth.left / growth.growing, kFullRate + 1);
    if (level > bound) {
      push(level, id);
    } else {
      lowest = level;
      full_.push_back(id);
    }
  }
  return lowest;
}

void Filling::push(Rate level, LinkId id) {
  heap_.push_back(heap_key(level, id));
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

// Fixes the rates of flows whose own limits are at most `level`, the rate at which the next link would fill. A flow
// that stops at its limit can only make that link fill later, so these flows are fixed before the link's flows.
void Filling::stop_limited(Rate level) {
  for (const LinkId id : full_) push(level, id);
  if (!sorted_) {
    std::sort(region_flows_.begin(), region_flows_.end(),
              [&](FlowId a, FlowId b) { return table_.flows[a].limit < table_.flows[b].limit; });
    sorted_ = true;
  }
  for (; limited_ < region_flows_.size(); ++limited_) {
    const FlowId id = region_flows_[limited_];
    lowest_limit_ = table_.flows[id].limit;
    if (lowest_limit_ > level) return;
    if (growing(id)) stop(id, FlowTable::kNobody, lowest_limit_);
  }
  lowest_limit_ = kFullRate + 1;
}

void Filling::stop_links(Rate level) {
  for (const LinkId id : full_) {
    FlowTable::Link& link = table_.links[id];
    table_.set_level(id, level);
    link.held = growth_[id].growing;
    link.rest = link.full - growth_[id].left;
  }
  for (const LinkId id : full_) {
    for (const FlowTable::Entry entry : table_.links[id].flows) {
      if (growing(entry.flow)) stop(entry.flow, id, level);
    }
  }
}

void Filling::stop(FlowId id, LinkId holder, Rate rate) {
  FlowTable::Flow& flow = table_.flows[id];
  ++marks_[id];
  ++stopped_;
  table_.holders[id] = holder;
  flow.joined = true;
  for (const FlowTable::Use& use : flow.all()) {
    FlowTable::Link& link = table_.links[use.link];
    if (link.level == FlowTable::kNever) {
      link.below = std::max(link.below, static_cast<FlowTable::Speed>(rate));
    } else if (use.link == holder) {
      link.own += use.weight;
      link.least_limit = std::min(link.least_limit, flow.limit);
    }
    Growth& growth = growth_[use.link];
    if (growth.seen == visit_) {
      growth.left -= use.weight * rate;
      growth.growing -= use.weight;
    } else {
      link.rest += use.weight * (rate - taken_[id]);
    }
  }
}

// Counts the flows of links that do not fill.
void Filling::close() {
  for (const LinkId id : region_links_) {
    FlowTable::Link& link = table_.links[id];
    if (link.level != FlowTable::kNever) continue;
    link.held = 0;
    link.rest = link.full - growth_[id].left;
  }
}

}  // namespace orrery
