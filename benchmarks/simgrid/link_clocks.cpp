#include "benchmarks/simgrid/link_clocks.h"

#include <algorithm>
#include <functional>

namespace orrery {
namespace {

Picoseconds rounded_up(LinkClocks::Length length, Rate rate) {
  // Most numbers have no more than 64 bits, of which division takes less time.
  if (length >> 62 == 0) return static_cast<Picoseconds>((static_cast<std::int64_t>(length) + rate - 1) / rate);
  return static_cast<Picoseconds>((length + rate - 1) / rate);
}

}  // namespace

void LinkClocks::start(std::uint32_t name, Length length, std::span<const LinkUse> uses, Rate limit) {
  const FlowId id = share_.add_flow(uses, limit);
  if (id >= names_.size()) names_.resize(id + 1);
  names_[id] = name;
  if (name >= running_.size()) running_.resize(name + 1);
  Running& flow = running_[name];
  flow = {id, flow.serial, length, now(), FlowTable::kNobody, share_.rate(id)};
  list(name, length);
}

void LinkClocks::remove(std::uint32_t name) {
  unlist(name);
  share_.remove_flow(running_[name].flow);
}

LinkClocks::Length LinkClocks::left(std::uint32_t name) const {
  const Running& flow = running_[name];
  if (flow.holder != FlowTable::kNobody) return flow.left - reading(clocks_[flow.holder]);
  return flow.left - Length{flow.rate} * (now() - flow.since);
}

void LinkClocks::set_left(std::uint32_t name, Length left) {
  unlist(name);
  list(name, left);
}

std::span<const std::uint32_t> LinkClocks::next() {
  ended_.clear();
  while (ended_.empty()) {
    if (share_.stale()) settle();
    for (const LinkId id : dirty_) schedule(id);
    dirty_.clear();
    wait_for_links();
    if (!queue_.due() && !queue_.advance()) break;
    while (queue_.due()) {
      const EventQueue::Event event = queue_.take();
      if (event.id != kLinks && running_[event.id].serial == event.serial) end(event.id);
    }
    take_links();
  }
  if (!std::is_sorted(ended_.begin(), ended_.end())) std::sort(ended_.begin(), ended_.end());
  return ended_;
}

FairShare::Holders LinkClocks::settle() {
  const FairShare::Holders changes = share_.update_holders();
  for (const LinkId id : changes.links) {
    const Rate level = share_.level(id) == FlowTable::kNever ? 0 : share_.level(id);
    if (level == clocks_[id].level) continue;
    wind(id);
    clocks_[id].level = level;
    mark(id);
  }
  for (const FlowId id : changes.flows) hang(names_[id]);
  return changes;
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
  const Length now_left = left(name);
  unlist(name);
  flow.holder = share_.holder(flow.flow);
  if (flow.holder == FlowTable::kNobody) flow.rate = share_.rate(flow.flow);
  list(name, now_left);
}

// Lists the end of a flow where its holder is.
void LinkClocks::list(std::uint32_t name, Length left) {
  Running& flow = running_[name];
  ++flow.serial;
  flow.since = now();
  flow.left = left;
  flow.listed = flow.holder != FlowTable::kNobody || flow.rate > 0;
  if (!flow.listed) return;
  if (flow.holder == FlowTable::kNobody) return queue_.push(now() + rounded_up(left, flow.rate), {name, flow.serial});
  Clock& clock = clocks_[flow.holder];
  flow.left += reading(clock);
  clock.ends.push_back({flow.left, name, flow.serial});
  std::push_heap(clock.ends.begin(), clock.ends.end(), std::greater<>());
  mark(flow.holder);
}

// Makes the listed end of a flow an outdated one.
void LinkClocks::unlist(std::uint32_t name) {
  Running& flow = running_[name];
  if (!flow.listed) return;
  flow.listed = false;
  ++flow.serial;
  if (flow.holder == FlowTable::kNobody) return;
  ++clocks_[flow.holder].outdated;
  mark(flow.holder);
}

// Finds the first end on a link's clock, and drops outdated ones before it.
void LinkClocks::schedule(LinkId id) {
  Clock& clock = clocks_[id];
  clock.dirty = false;
  // Outdated ends go when they come first, or when they are the most.
  if (clock.outdated > 16 && 2 * clock.outdated > clock.ends.size()) {
    std::erase_if(clock.ends, [&](const End& end) { return outdated(end); });
    std::make_heap(clock.ends.begin(), clock.ends.end(), std::greater<>());
    clock.outdated = 0;
  }
  while (!clock.ends.empty() && outdated(clock.ends.front())) {
    pop(clock);
    --clock.outdated;
  }
  if (clock.ends.empty()) {
    clock.reading = 0;
    clock.since = now();
  }
  const bool ends = !clock.ends.empty() && clock.level > 0;
  firsts_.move(
      id, ends ? now() + rounded_up(clock.ends.front().reading - reading(clock), clock.level) : MovingTimes::kNone);
}

// Lets queue_ stop at the first end of a link.
void LinkClocks::wait_for_links() {
  const Picoseconds first = firsts_.earliest();
  if (first == MovingTimes::kNone || (first == waited_for_ && first > now())) return;
  waited_for_ = first;
  queue_.push(waited_for_, {kLinks, 0});
}

void LinkClocks::take_links() {
  while (firsts_.earliest() == now()) take(firsts_.first());
}

// Ends the flows of a link that have ended.
void LinkClocks::take(LinkId id) {
  Clock& clock = clocks_[id];
  wind(id);
  while (!clock.ends.empty() && clock.ends.front().reading <= clock.reading) {
    const End first = clock.ends.front();
    pop(clock);
    outdated(first) ? void(--clock.outdated) : end(first.name);
  }
  firsts_.move(id, MovingTimes::kNone);
  mark(id);  // flows that have ended need the reading until the caller has dealt with them
}

void LinkClocks::pop(Clock& clock) {
  std::pop_heap(clock.ends.begin(), clock.ends.end(), std::greater<>());
  clock.ends.pop_back();
}

void LinkClocks::end(std::uint32_t name) {
  ++running_[name].serial;
  running_[name].listed = false;
  ended_.push_back(name);
}

}  // namespace orrery
