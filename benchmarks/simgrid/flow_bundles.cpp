#include "benchmarks/simgrid/flow_bundles.h"

#include <algorithm>
#include <functional>

namespace orrery {
namespace {

// Links to leave out are looked for so often that so many links are looked at for each solve.
constexpr std::size_t kLooks = 8;

// A new ceiling of a bundle that is as fast as `rate`. The room between a link's being left out and its being woken is
// more than that, so that links are not looked at in vain.
Rate ceiling_above(Rate rate) { return rate + rate / 8; }
bool nearly_filled(std::int64_t load, std::int64_t room) { return load + load / 4 > room; }
bool hardly_filled(std::int64_t load, std::int64_t room) { return load + load / 2 <= room; }

std::int64_t weight_on(std::span<const LinkUse> uses, LinkId link) {
  return std::ranges::find(uses, link, &LinkUse::link)->weight;
}

}  // namespace

bool FlowBundles::Uses::operator==(const Uses& other) const {
  return limit == other.limit && std::ranges::equal(all(), other.all(), [](const LinkUse& x, const LinkUse& y) {
           return x.link == y.link && x.weight == y.weight;
         });
}

std::size_t FlowBundles::Hash::operator()(const Uses& uses) const {
  std::uint64_t hash = static_cast<std::uint64_t>(uses.limit);
  for (const LinkUse& use : uses.all()) {
    hash = (hash ^ use.link) * 0x9e3779b97f4a7c15U;
    hash = (hash ^ hash >> 29 ^ static_cast<std::uint64_t>(use.weight)) * 0xbf58476d1ce4e5b9U;
  }
  return hash ^ hash >> 32;
}

void FlowBundles::start(std::uint32_t name, Length length, std::span<const LinkUse> uses, Rate limit) {
  if (!crosses_idle(uses)) return clocks_.start(alone(name), length, uses, limit);
  Uses route{{}, 0, limit};
  for (const LinkUse& use : uses) route.add(use);
  begin(name, route);
  join(name, length, 0);
}

std::span<const std::uint32_t> FlowBundles::next() {
  ended_.clear();
  while (ended_.empty()) {
    if (share_.stale() || !due_.empty()) {
      settle();
      look_for_idle();
    }
    const std::span<const std::uint32_t> ends = clocks_.next();
    if (ends.empty()) break;
    for (const std::uint32_t name : ends) {
      if (name % 2 == 1) {
        end_bundle(name / 2);
      } else {
        clocks_.remove(name);
        ended_.push_back(name / 2);
      }
    }
  }
  if (!std::is_sorted(ended_.begin(), ended_.end())) std::sort(ended_.begin(), ended_.end());
  return ended_;
}

// Returns the bundle that a flow of share_ is, or kNone.
std::uint32_t FlowBundles::bundle_of(FlowId id) const {
  const std::uint32_t name = clocks_.name(id);
  return name % 2 == 1 ? name / 2 : kNone;
}

bool FlowBundles::crosses_idle(std::span<const LinkUse> uses) const {
  return idle_count_ > 0 && std::ranges::any_of(uses, [&](const LinkUse& use) { return links_[use.link].idle; });
}

// Returns what each flow of a bundle has sent since the bundle began.
FlowBundles::Length FlowBundles::sent(std::uint32_t bundle) const {
  return bundles_[bundle].first - clocks_.left(bundled(bundle));
}

// Notes a flow that crosses idle links on these.
void FlowBundles::begin(std::uint32_t name, const Uses& route) {
  if (name >= flows_.size()) flows_.resize(name + 1);
  Flow& flow = flows_[name];
  flow.route = route;
  ++flow.runs;
  for (const LinkUse& use : route.all()) {
    if (links_[use.link].idle) links_[use.link].members.push_back({name, flow.runs});
  }
}

// Puts a flow, as fast as `rate` so far, into the bundle of those that cross the same links that are not idle.
void FlowBundles::join(std::uint32_t name, Length left, Rate rate) {
  Flow& flow = flows_[name];
  Uses uses{{}, 0, flow.route.limit};
  for (const LinkUse& use : flow.route.all()) {
    if (!links_[use.link].idle) uses.add(use);
  }
  const auto [found, fresh] = bundles_by_uses_.try_emplace(uses, kNone);
  if (fresh) found->second = new_bundle(uses, left, rate);
  const std::uint32_t id = flow.bundle = found->second;
  Bundle& bundle = bundles_[id];
  const Length end = sent(id) + left;
  flow.end = end;
  bundle.ends.push_back({end, name, ++flow.joins});
  std::push_heap(bundle.ends.begin(), bundle.ends.end(), std::greater<>());
  if (!fresh) clocks_.resize(bundled(id), bundle.size, bundle.size + 1);
  ++bundle.size;
  charge(flow.route, bundle.ceiling, 1);
  if (end < bundle.first) {
    bundle.first = end;
    clocks_.set_left(bundled(id), left);
  }
}

std::uint32_t FlowBundles::new_bundle(const Uses& uses, Length left, Rate rate) {
  if (spare_.empty()) {
    spare_.push_back(static_cast<std::uint32_t>(bundles_.size()));
    bundles_.emplace_back();
  }
  const std::uint32_t id = spare_.back();
  spare_.pop_back();
  clocks_.start(bundled(id), left, uses.all(), uses.limit);
  Bundle& bundle = bundles_[id];
  bundle.uses = uses;
  bundle.size = 0;
  bundle.first = left;
  // A flow that nothing slows has its rate at once.
  bundle.ceiling = ceiling_above(std::max(rate, share_.rate(clocks_.flow(bundled(id)))));
  return id;
}

// Takes a flow out of its bundle.
void FlowBundles::leave(std::uint32_t name) {
  Flow& flow = flows_[name];
  const std::uint32_t id = flow.bundle;
  Bundle& bundle = bundles_[id];
  charge(flow.route, bundle.ceiling, -1);
  flow.bundle = kNone;
  if (--bundle.size == 0) return dissolve(id);
  clocks_.resize(bundled(id), bundle.size + 1, bundle.size);
  const Length so_far = sent(id);
  drop_outdated(id);
  if (bundle.ends.front().sent != bundle.first) wait_for_first(id, so_far);
}

void FlowBundles::dissolve(std::uint32_t id) {
  clocks_.remove(bundled(id));
  bundles_by_uses_.erase(bundles_[id].uses);
  bundles_[id].ends.clear();
  spare_.push_back(id);
}

bool FlowBundles::outdated(std::uint32_t bundle, const End& end) const {
  const Flow& flow = flows_[end.name];
  return flow.bundle != bundle || flow.joins != end.join;
}

void FlowBundles::pop(Bundle& bundle) {
  std::pop_heap(bundle.ends.begin(), bundle.ends.end(), std::greater<>());
  bundle.ends.pop_back();
}

void FlowBundles::drop_outdated(std::uint32_t id) {
  Bundle& bundle = bundles_[id];
  while (!bundle.ends.empty() && outdated(id, bundle.ends.front())) pop(bundle);
}

// Lets a bundle of which each flow has sent so much end when its first flow does.
void FlowBundles::wait_for_first(std::uint32_t id, Length so_far) {
  Bundle& bundle = bundles_[id];
  bundle.first = bundle.ends.front().sent;
  clocks_.set_left(bundled(id), bundle.first - so_far);
}

// Ends the flows of a bundle that have ended.
void FlowBundles::end_bundle(std::uint32_t id) {
  Bundle& bundle = bundles_[id];
  const Length so_far = sent(id);
  const std::int64_t before = bundle.size;
  for (; !bundle.ends.empty() && bundle.ends.front().sent <= so_far; pop(bundle)) {
    if (outdated(id, bundle.ends.front())) continue;
    const std::uint32_t name = bundle.ends.front().name;
    Flow& flow = flows_[name];
    charge(flow.route, bundle.ceiling, -1);
    flow.bundle = kNone;
    ++flow.runs;
    --bundle.size;
    ended_.push_back(name);
  }
  if (bundle.size == 0) return dissolve(id);
  drop_outdated(id);
  clocks_.resize(bundled(id), before, bundle.size);
  wait_for_first(id, so_far);
}

// Counts so many flows of a route, with a ceiling, on its idle links.
void FlowBundles::charge(const Uses& route, Rate ceiling, std::int64_t flows) {
  for (const LinkUse& use : route.all()) {
    Link& link = links_[use.link];
    if (!link.idle) continue;
    link.weight += flows * use.weight;
    link.load += flows * use.weight * ceiling;
    if (flows > 0) note_due(use.link);
  }
}

void FlowBundles::note_due(LinkId id) {
  Link& link = links_[id];
  if (link.due || link.load + link.weight <= share_.table().links[id].full) return;
  link.due = true;
  due_.push_back(id);
}

void FlowBundles::set_ceiling(std::uint32_t id, Rate ceiling) {
  Bundle& bundle = bundles_[id];
  const Rate more = ceiling - bundle.ceiling;
  bundle.ceiling = ceiling;
  for (const End& end : bundle.ends) {
    if (outdated(id, end)) continue;
    for (const LinkUse& use : flows_[end.name].route.all()) {
      if (!links_[use.link].idle) continue;
      links_[use.link].load += use.weight * more;
      if (more > 0) note_due(use.link);
    }
  }
}

// Sees to it that no bundle is faster than its ceiling, and wakes links that this may fill.
void FlowBundles::settle() {
  do {
    const FairShare::Changes changes = clocks_.settle();
    for (const FlowId id : changes.flows) {
      if (bundle_of(id) != kNone) watch_bundle(id);
    }
    for (const LinkId id : changes.links) watch_link(id);
    look_at_due();
  } while (share_.stale() || !due_.empty());
}

// Sees to the ceiling of a bundle that has another holder.
void FlowBundles::watch_bundle(FlowId id) {
  const std::uint32_t bundle = bundle_of(id);
  const Rate rate = share_.rate(id);
  const LinkId holder = share_.holder(id);
  if (bundles_[bundle].ceiling < rate) set_ceiling(bundle, ceiling_above(rate));
  if (holder != FlowTable::kNobody) {
    links_[holder].lowest = std::min(links_[holder].lowest, bundles_[bundle].ceiling);
  }
}

// Sees to the ceilings of the bundles that a link holds whose level has changed.
void FlowBundles::watch_link(LinkId id) {
  Link& link = links_[id];
  const Rate level = share_.level(id);
  if (level <= link.lowest) return;
  link.lowest = kNoCeiling;
  if (level == FlowTable::kNever) return;
  for (const FlowTable::Entry entry : share_.table().links[id].flows) {
    if (share_.holder(entry.flow) == id && bundle_of(entry.flow) != kNone) watch_bundle(entry.flow);
  }
}

void FlowBundles::look_at_due() {
  woken_.clear();
  for (const LinkId id : due_) {
    links_[id].due = false;
    if (links_[id].idle && !stays_idle(id)) woken_.push_back(id);
  }
  due_.clear();
  for (const LinkId id : woken_) wake(id);
}

// Returns whether an idle link has room, and lowers the ceilings of its flows to what they need.
bool FlowBundles::stays_idle(LinkId id) {
  Link& link = links_[id];
  std::erase_if(link.members, [&](const Member& member) { return !running(member); });
  const auto rate = [&](std::uint32_t bundle) { return share_.rate(clocks_.flow(bundled(bundle))); };
  std::int64_t load = 0;
  for (const Member& member : link.members) {
    const Flow& flow = flows_[member.name];
    load += rate(flow.bundle) * weight_on(flow.route.all(), id);
  }
  if (nearly_filled(load, share_.table().links[id].full - link.weight)) return false;
  for (const Member& member : link.members) {
    const std::uint32_t bundle = flows_[member.name].bundle;
    const Rate ceiling = ceiling_above(rate(bundle));
    if (ceiling >= bundles_[bundle].ceiling) continue;
    set_ceiling(bundle, ceiling);
    watch_bundle(clocks_.flow(bundled(bundle)));
  }
  return true;
}

void FlowBundles::wake(LinkId id) {
  Link& link = links_[id];
  link.idle = false;
  link.load = link.weight = 0;
  link.lowest = kNoCeiling;
  --idle_count_;
  for (const Member& member : link.members) {
    if (!running(member)) continue;
    const std::uint32_t bundle = flows_[member.name].bundle;
    const Length left = flows_[member.name].end - sent(bundle);
    const Rate rate = bundles_[bundle].ceiling;
    leave(member.name);
    join(member.name, left, rate - rate / 8);
  }
  link.members.clear();
}

// Leaves out the links that have much room, from time to time.
void FlowBundles::look_for_idle() {
  if (++settled_ * kLooks < links_.size()) return;
  settled_ = 0;
  const std::vector<FlowTable::Link>& links = share_.table().links;
  left_out_.clear();
  for (LinkId id = 0; id < links_.size(); ++id) {
    const FlowTable::Link& link = links[id];
    if (link.level != FlowTable::kNever || link.held != 0 || link.flows.size() < least_parts_) continue;
    if (hardly_filled(link.rest, link.full - link.weight)) left_out_.push_back(id);
  }
  // While there are more and more such links, flows would be moved again and again.
  const bool growing = left_out_.size() > candidates_;
  candidates_ = left_out_.size();
  if (growing || left_out_.empty()) return;
  candidates_ = 0;
  leave_out();
  settle();
}

// Leaves out the links of left_out_.
void FlowBundles::leave_out() {
  moved_.clear();
  for (const LinkId id : left_out_) {
    while (!share_.table().links[id].flows.empty()) unbundle(share_.table().links[id].flows.back().flow);
  }
  for (const LinkId id : left_out_) links_[id].idle = links_[id].fresh = true;
  idle_count_ += left_out_.size();
  for (const Moved& moved : moved_) {
    const Flow& flow = flows_[moved.name];
    for (const LinkUse& use : flow.route.all()) {
      if (links_[use.link].fresh) links_[use.link].members.push_back({moved.name, flow.runs});
    }
    join(moved.name, moved.left, moved.rate);
  }
  for (const LinkId id : left_out_) links_[id].fresh = false;
}

// Takes a flow or bundle from share_ and puts its flows into moved_.
void FlowBundles::unbundle(FlowId part) {
  const std::uint32_t id = bundle_of(part);
  if (id == kNone) {
    const std::uint32_t name = clocks_.name(part);
    Uses route{{}, 0, share_.table().flows[part].limit};
    for (const FlowTable::Use& use : share_.table().flows[part].all()) route.add({use.link, use.weight});
    moved_.push_back({name / 2, clocks_.left(name), share_.rate(part)});
    clocks_.remove(name);
    return begin(name / 2, route);
  }
  const Length so_far = sent(id);
  for (const End& end : bundles_[id].ends) {
    if (outdated(id, end)) continue;
    Flow& flow = flows_[end.name];
    charge(flow.route, bundles_[id].ceiling, -1);
    flow.bundle = kNone;
    moved_.push_back({end.name, end.sent - so_far, share_.rate(part)});
  }
  dissolve(id);
}

}  // namespace orrery
