#include "sim/engine/levels.h"

#include <algorithm>
#include <functional>

namespace orrery {
namespace {

constexpr std::uint32_t kSettledKey = UINT32_MAX;

std::uint32_t clipped_key(Rate level) { return static_cast<std::uint32_t>(std::min(level, kFullRate + 1)); }

}  // namespace

// Returns whether floor((full - rest) / held) = `level` is where a link fills: no flow that it does not hold is so near
// this level that it would still grow when the link fills. Rounding makes a link fill at x < level if such flows, of
// weight w together, have rate x and full - rest + w x < (x + 1) (held + w), hence held (level - x) < held + w.
bool Levels::plain(const FlowTable::Link& link, Rate level) const {
  return level > link.below && (level - link.below) * link.held >= link.weight;
}

// Returns the least rate at which a link's flows may have to change, or kSettledKey if its level is right.
std::uint32_t Levels::key(const FlowTable::Link& link) const {
  if (link.held == 0) {
    // With room for one unit more for each flow, no rounding can make the link fill.
    if (link.demand <= link.full || link.full - link.rest >= link.weight)
      return link.level == FlowTable::kNever ? kSettledKey : clipped_key(link.level);
    return clipped_key(std::min(link.level, link.full / link.weight));
  }
  if (link.rest > link.full) return clipped_key(std::min(link.level, link.full / link.weight));
  const std::int64_t left = link.full - link.rest - link.level * link.held;
  if (left < 0) return clipped_key(link.room_each());
  return left < link.held && plain(link, link.level) ? kSettledKey : clipped_key(link.level);
}

void Levels::queue(LinkId id) {
  FlowTable::Link& link = table_.links[id];
  if (link.queued != kSettledKey) return;
  const std::uint32_t at = key(link);
  if (at == kSettledKey) return;
  link.queued = at;
  queue_.push_back(static_cast<std::uint64_t>(at) << 32 | id);
  std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
}

bool Levels::settle(std::size_t budget) {
  looked_ = 0;
  for (;;) {
    for (const LinkId id : table_.touched) {
      table_.links[id].touched = false;
      queue(id);
    }
    table_.touched.clear();
    if (queue_.empty()) return true;
    if (looked_ > budget) break;
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    const auto at = static_cast<std::uint32_t>(queue_.back() >> 32);
    const auto id = static_cast<LinkId>(queue_.back());
    queue_.pop_back();
    FlowTable::Link& link = table_.links[id];
    if (link.queued != at) continue;
    link.queued = kSettledKey;
    if (key(link) != kSettledKey) settle_link(id);
  }
  for (const std::uint64_t entry : queue_) {
    const auto id = static_cast<LinkId>(entry);
    table_.links[id].queued = kSettledKey;
    table_.touch(id);
  }
  queue_.clear();
  return false;
}

void Levels::settle_link(LinkId id) {
  FlowTable::Link& link = table_.links[id];
  // Flows of weight 0 may be at the link's level although it holds none of weight; they are let go below.
  if (link.held == 0 && link.weightless == 0 && (link.demand <= link.full || link.full - link.rest >= link.weight)) {
    table_.set_level(id, FlowTable::kNever);
    return;
  }
  if (link.held > 0 && link.rest <= link.full && link.demand > link.full) {
    const Rate level = link.room_each();
    if (plain(link, level)) {
      if (level < link.level) return lower(id, level);
      if (may_rise(id, level)) return pass_on(id, level);
      gather(id, true);
      std::int64_t left = link.full - link.rest, weight = link.held;
      const Rate risen = fill(left, weight);
      return apply(id, risen, left, weight, link.below);
    }
  }
  gather_all(id);
  std::int64_t left = link.full, weight = link.weight;
  Rate level = fill(left, weight);
  if (level > link.level && !own_may_rise(id, level)) {
    gather(id, false);
    left = link.full;
    weight = link.weight;
    level = fill(left, weight);
  }
  if (!due_later(id, level)) apply(id, level, left, weight, 0);
}

// Returns whether all flows that a link holds may get faster up to a level without another holder.
bool Levels::may_rise(LinkId id, Rate level) {
  const FlowTable::Link& link = table_.links[id];
  return link.own == link.held && link.weightless == 0 && own_may_rise(id, level);
}

// Returns the same of the flows of which a link is the holder.
bool Levels::own_may_rise(LinkId id, Rate level) {
  const FlowTable::Link& link = table_.links[id];
  if (link.least_limit <= level) return false;
  table_.fan_out(id);
  const std::span<const Fans::Fan> fans = link.fans.all();
  looked_ += fans.size();
  return std::ranges::none_of(fans, [&](const Fans::Fan& fan) { return table_.links[fan.link].level < level; });
}

// Lowers the level of a link to one above all rates of flows that the link does not hold.
void Levels::lower(LinkId id, Rate level) {
  const FlowTable::Link& link = table_.links[id];
  if (link.own != link.held || link.weightless > 0) take_tied(id);
  pass_on(id, level);
  finish_switches(id);
}

// Makes a link the holder of all flows that it holds.
void Levels::take_tied(LinkId id) {
  const FlowTable::Link& link = table_.links[id];
  looked_ += link.flows.size();
  for (const FlowTable::Entry entry : link.flows) {
    const LinkId holder = table_.holders[entry.flow];
    if (holder == id || holder == FlowTable::kNobody || table_.links[holder].level != link.level) continue;
    table_.note(entry.flow);
    table_.discount(entry.flow, id);
    switches_.push_back({entry.flow, id});
  }
}

// Gives flows their new holders and counts them.
void Levels::finish_switches(LinkId id) {
  for (const Switch& s : switches_) {
    table_.holders[s.flow] = s.holder;
    table_.count(s.flow, id);
  }
  switches_.clear();
}

// Gives a link its level, and the other links of the flows of which it is the holder what these flows take now.
void Levels::pass_on(LinkId id, Rate level) {
  const Rate before = table_.links[id].level;
  table_.set_level(id, level);
  if (before == level) return;
  table_.fan_out(id);
  const std::span<const Fans::Fan> fans = table_.links[id].fans.all();
  looked_ += fans.size();
  for (const Fans::Fan& fan : fans) {
    FlowTable::Link& link = table_.links[fan.link];
    if (link.level == before) {
      link.held -= fan.weight;
    } else {
      link.rest -= fan.weight * before;
    }
    if (link.level == level) {
      link.held += fan.weight;
    } else {
      link.rest += fan.weight * level;
      link.below = std::max(link.below, static_cast<FlowTable::Speed>(level));
    }
    if (link.queued == kSettledKey && !link.touched && link.contested()) table_.touch(fan.link);
  }
}

// Collects the flows of a link, or those alone that it holds.
void Levels::gather(LinkId id, bool held_alone) {
  const FlowTable::Link& link = table_.links[id];
  looked_ += link.flows.size();
  parts_.clear();
  for (const FlowTable::Entry entry : link.flows) {
    const LinkId holder = table_.holders[entry.flow];
    const bool held = holder != FlowTable::kNobody && table_.links[holder].level == link.level;
    if (held_alone && !held) continue;
    const FlowTable::Flow& flow = table_.flows[entry.flow];
    parts_.push_back({entry.flow, entry.weight, flow.limit, held ? table_.without(flow, id) : table_.rate(entry.flow)});
  }
}

// Collects the flows of a link as if nothing but the link slowed those of which it is the holder, for which their uses
// need not be looked at.
void Levels::gather_all(LinkId id) {
  const FlowTable::Link& link = table_.links[id];
  looked_ += link.flows.size();
  parts_.clear();
  for (const FlowTable::Entry entry : link.flows) {
    const LinkId holder = table_.holders[entry.flow];
    const Rate other = holder == id                   ? FlowTable::kNever
                       : holder == FlowTable::kNobody ? table_.flows[entry.flow].limit
                                                      : table_.links[holder].level;
    parts_.push_back({entry.flow, entry.weight, holder == FlowTable::kNobody ? other : FlowTable::kNever, other});
  }
}

// Returns the level at which a link fills that has `left` for the flows of parts_, of weight `weight` together. Flows
// that stop before are taken from left and weight. A flow that is slower than the rate at which the link would fill if
// no flow stopped before makes it fill later; so it stops before the link fills.
Rate Levels::fill(std::int64_t& left, std::int64_t& weight) {
  std::size_t growing = parts_.size();
  while (weight > 0) {
    const Rate level = FlowTable::quotient(left, weight);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < growing; ++i) {
      const Part& p = parts_[i];
      if (p.other < level || p.limit <= level) {
        left -= p.weight * p.other;
        weight -= p.weight;
      } else {
        std::swap(parts_[kept++], parts_[i]);
      }
    }
    if (kept == growing) return level;
    growing = kept;
  }
  return FlowTable::kNever;
}

// Queues a link again if links with lower keys are to be settled before it, and returns whether there are such links.
bool Levels::due_later(LinkId id, Rate level) {
  FlowTable::Link& link = table_.links[id];
  const std::uint32_t at = clipped_key(std::min(level, link.level));
  if (level == link.level || queue_.empty() || queue_.front() >> 32 >= at) return false;
  link.queued = at;
  queue_.push_back(static_cast<std::uint64_t>(at) << 32 | id);
  std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
  return true;
}

// Gives a link its level, and the flows of parts_ the holders that follow. below: upper bound of the rates of the
// link's flows that are not in parts_.
void Levels::apply(LinkId id, Rate level, std::int64_t left, std::int64_t weight, FlowTable::Speed below) {
  FlowTable::Link& link = table_.links[id];
  for (const Part& p : parts_) {
    const Rate rate = std::min(p.other, level);
    if (rate != level || rate == p.limit) below = std::max(below, static_cast<FlowTable::Speed>(rate));
    const LinkId next = next_holder(p, id, level);
    if (next == table_.holders[p.flow]) continue;
    table_.note(p.flow);
    table_.discount(p.flow, id);
    switches_.push_back({p.flow, next});
  }
  pass_on(id, level);
  link.held = weight;
  link.rest = link.full - left;
  finish_switches(id);
  link.below = below;
}

// Returns the holder of a flow once a link has a level: the one it has if that holds the flow still.
LinkId Levels::next_holder(const Part& part, LinkId id, Rate level) const {
  const Rate rate = std::min(part.other, level);
  if (rate == part.limit) return FlowTable::kNobody;
  const LinkId now = table_.holders[part.flow];
  if (now == id ? rate == level : now != FlowTable::kNobody && table_.links[now].level == rate) return now;
  if (rate == level) return id;
  for (const FlowTable::Use& use : table_.flows[part.flow].all()) {
    if (use.link != id && table_.links[use.link].level == rate) return use.link;
  }
  return FlowTable::kNobody;
}

}  // namespace orrery
