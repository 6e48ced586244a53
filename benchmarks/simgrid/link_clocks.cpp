#include "benchmarks/simgrid/link_clocks.h"

namespace orrery {

void LinkClocks::start(std::uint32_t name, Length length, std::span<const LinkUse> uses, Rate limit) {
  const FlowId id = share_.add_flow(uses, limit);
  if (id >= names_.size()) names_.resize(id + 1);
  names_[id] = name;
  if (name >= flows_.size()) flows_.resize(name + 1);
  flows_[name] = id;
  clocks_.add_things(name + 1);
  clocks_.start(name, name, length, share_.rate(id));
}

void LinkClocks::remove(std::uint32_t name) {
  clocks_.stop(name);
  share_.remove_flow(flows_[name]);
}

void LinkClocks::set_left(std::uint32_t name, Length left) {
  clocks_.stop(name);
  clocks_.start(name, name, left, 0);
  if (share_.holder(flows_[name]) != FlowTable::kWaiting) go_on(name);
}

std::span<const std::uint32_t> LinkClocks::next() {
  ended_.clear();
  while (ended_.empty()) {
    if (share_.stale()) settle();
    if (!clocks_.advance()) break;
    // The queue takes events of one time in the order of their names.
    while (clocks_.queue().due()) {
      const EventQueue::Event event = clocks_.queue().take();
      if (event.id != Clocks<Sending>::kWake && clocks_.ended(event.id, event)) ended_.push_back(event.id);
    }
  }
  return ended_;
}

FairShare::Changes LinkClocks::settle() {
  const FairShare::Changes changes = share_.update();
  for (const LinkId id : changes.links) {
    const Rate level = share_.level(id);
    clocks_.set_speed(id, level == FlowTable::kNever ? 0 : level);
  }
  for (const FlowId id : changes.flows) go_on(names_[id]);
  return changes;
}

// Lets a flow go on with the clock of the link that holds it now, or by itself.
void LinkClocks::go_on(std::uint32_t name) {
  const LinkId holder = share_.holder(flows_[name]);
  if (holder == FlowTable::kNobody) {
    clocks_.run(name, share_.rate(flows_[name]));
  } else {
    clocks_.hang(name, holder);
  }
}

}  // namespace orrery
