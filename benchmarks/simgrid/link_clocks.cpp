#include "benchmarks/simgrid/link_clocks.h"

#include <algorithm>
#include <functional>

namespace orrery {
namespace {

Picoseconds rounded_up(LinkClocks::Length length, Rate rate) {
  return static_cast<Picoseconds>((length + rate - 1) / rate);
}

}  // namespace

void LinkClocks::start(std::uint32_t name, Length length, std::span<const LinkUse> uses, Rate limit) {
  const FlowId id = share_.add_flow(uses, limit);
  if (id >= names_.size()) names_.resize(id + 1);
  names_[id] = name;
  if (name >= running_.size()) running_.resize(name + 1);
  Running& flow = running_[name];
  flow = {id, flow.serial + 1, length, now(), FlowTable::kNobody, share_.rate(id)};
  if (flow.rate > 0) queue_.push(now() + rounded_up(length, flow.rate), {first_name_ + name, flow.serial});
}

std::span<const std::uint32_t> LinkClocks::next() {
  ended_.clear();
  while (ended_.empty()) {
    if (share_.stale()) settle();
    if (!queue_.due() && !queue_.advance()) break;
    while (queue_.due()) {
      const EventQueue::Event event = queue_.take();
      take(event.id, event.serial);
    }
  }
  if (!std::is_sorted(ended_.begin(), ended_.end())) std::sort(ended_.begin(), ended_.end());
  return ended_;
}

void LinkClocks::settle() {
  const FairShare::Holders changes = share_.update_holders();
  for (const LinkId id : changes.links) {
    const Rate level = share_.level(id) == FlowTable::kNever ? 0 : share_.level(id);
    if (level == clocks_[id].level) continue;
    wind(id);
    clocks_[id].level = level;
    mark(id);
  }
  for (const FlowId id : changes.flows) hang(names_[id]);
  for (const LinkId id : dirty_) schedule(id);
  dirty_.clear();
}

// Brings the clock of a link up to now.
void LinkClocks::wind(LinkId id) {
  Clock& clock = clocks_[id];
  clock.reading = reading(clock);
  clock.since = now();
}

void LinkClocks::mark(LinkId id) {
  if (clocks_[id].dirty) return;
  clocks_[id].dirty = true;
  dirty_.push_back(id);
}

// Hangs a flow on the clock of the link that holds it now, or on none.
void LinkClocks::hang(std::uint32_t name) {
  Running& flow = running_[name];
  if (flow.holder == FlowTable::kNobody) {
    flow.left -= Length{flow.rate} * (now() - flow.since);
  } else {
    flow.left -= reading(clocks_[flow.holder]);
    mark(flow.holder);
  }
  flow.holder = share_.holder(flow.flow);
  flow.since = now();
  ++flow.serial;
  if (flow.holder == FlowTable::kNobody) {
    flow.rate = share_.rate(flow.flow);
    if (flow.rate == 0) return;
    queue_.push(now() + rounded_up(flow.left, flow.rate), {first_name_ + name, flow.serial});
    return;
  }
  Clock& clock = clocks_[flow.holder];
  flow.left += reading(clock);
  clock.ends.push_back({flow.left, name, flow.serial});
  std::push_heap(clock.ends.begin(), clock.ends.end(), std::greater<>());
  mark(flow.holder);
}

// Finds the first end on a link's clock, and drops outdated ones before it.
void LinkClocks::schedule(LinkId id) {
  Clock& clock = clocks_[id];
  clock.dirty = false;
  ++clock.serial;
  while (!clock.ends.empty() && running_[clock.ends.front().name].serial != clock.ends.front().serial) {
    std::pop_heap(clock.ends.begin(), clock.ends.end(), std::greater<>());
    clock.ends.pop_back();
  }
  if (clock.ends.empty()) {
    clock.reading = 0;
    clock.since = now();
    return;
  }
  if (clock.level == 0) return;
  queue_.push(now() + rounded_up(clock.ends.front().reading - reading(clock), clock.level), {id, clock.serial});
}

// Ends the flows that an event says have ended, unless the event is outdated.
void LinkClocks::take(std::uint32_t id, std::uint32_t serial) {
  if (id >= first_name_) {
    if (running_[id - first_name_].serial == serial) end(id - first_name_);
    return;
  }
  Clock& clock = clocks_[id];
  if (clock.serial != serial) return;
  wind(id);
  while (!clock.ends.empty() && clock.ends.front().reading <= clock.reading) {
    const End first = clock.ends.front();
    std::pop_heap(clock.ends.begin(), clock.ends.end(), std::greater<>());
    clock.ends.pop_back();
    if (running_[first.name].serial == first.serial) end(first.name);
  }
  schedule(id);
}

void LinkClocks::end(std::uint32_t name) {
  ++running_[name].serial;
  ended_.push_back(name);
  share_.remove_flow(running_[name].flow);
}

}  // namespace orrery
