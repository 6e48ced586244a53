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
      gather(id, true);
      std::int64_t left = link.full - link.rest, weight = link.held;
      const Rate risen = fill(left, weight);
      return apply(id, risen, left, weight, link.below);
    }
  }
  gather(id, false);
  std::int64_t left = link.full, weight = 0;
  for (const Part& p : parts_) weight += p.weight;
  const Rate level = fill(left, weight);
  if (!due_later(id, level)) apply(id, level, left, weight, 0);
}

// Lowers the level of a link to one above all rates of flows that the link does not hold.
void Levels::lower(LinkId id, Rate level) {
  FlowTable::Link& link = table_.links[id];
  looked_ += link.flows.size();
  const Rate before = link.level;
  table_.set_level(id, level);
  for (const FlowTable::Entry entry : link.flows) {
    if (table_.speeds[entry.flow] == before) move(entry.flow, level, id);
  }
}

// Collects the flows of a link, or those alone that it holds.
void Levels::gather(LinkId id, bool held_alone) {
  const FlowTable::Link& link = table_.links[id];
  looked_ += link.flows.size();
  parts_.clear();
  for (const FlowTable::Entry entry : link.flows) {
    const bool held = table_.speeds[entry.flow] == link.level;
    if (held_alone && !held) continue;
    const FlowTable::Flow& flow = table_.flows[entry.flow];
    parts_.push_back({entry.flow, flow.uses[entry.use].weight, flow.limit,
                      held ? table_.without(flow, id) : table_.rate(entry.flow)});
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

// Gives a link its level, and the flows of parts_ the rates that follow. below: upper bound of the rates of the link's
// flows that are not in parts_.
void Levels::apply(LinkId id, Rate level, std::int64_t left, std::int64_t weight, FlowTable::Speed below) {
  FlowTable::Link& link = table_.links[id];
  table_.set_level(id, level);
  link.held = weight;
  link.rest = link.full - left;
  for (const Part& p : parts_) {
    const Rate rate = std::min(p.other, level);
    if (rate != level || rate == p.limit) below = std::max(below, static_cast<FlowTable::Speed>(rate));
    if (rate != table_.rate(p.flow)) {
      move(p.flow, rate, id);
    } else if (table_.flows[p.flow].holder == id && rate != level) {
      table_.note(p.flow);
    }
  }
  link.below = below;
}

// Changes the rate of a flow, on all its links but one.
void Levels::move(FlowId id, Rate rate, LinkId except) {
  FlowTable::Flow& flow = table_.flows[id];
  table_.note(id);
  const Rate before = table_.rate(id);
  const FlowTable::Speed was = table_.speeds[id];
  const FlowTable::Speed is = table_.speeds[id] = FlowTable::speed_of(rate, flow.limit);
  for (const FlowTable::Use& use : flow.all()) {
    if (use.link == except) continue;
    FlowTable::Link& link = table_.links[use.link];
    if (was == link.level) {
      link.held -= use.weight;
    } else {
      link.rest -= use.weight * before;
    }
    if (is == link.level) {
      link.held += use.weight;
    } else {
      link.rest += use.weight * rate;
      link.below = std::max(link.below, static_cast<FlowTable::Speed>(rate));
    }
    if (!link.touched && link.contested()) table_.touch(use.link);
  }
}

}  // namespace orrery
