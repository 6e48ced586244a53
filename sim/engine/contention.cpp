#include "sim/engine/contention.h"

#include <array>
#include <bit>
#include <utility>

namespace orrery {
namespace {

constexpr std::int64_t kCapacity = 1 << 20;  // capacity of every link, in units of flow weight

// Returns the weight of a flow (a transfer) on one of its links (NIC, NVLink or port): the link's full capacity on the
// link of which the flow uses the largest share, and proportionally less on its other links. share: the share of this
// link's bandwidth that the flow uses at full speed; busiest: the largest such share, which limits the flow's rate.
std::int64_t weight(Rate share, Rate busiest) {
  return share == busiest ? kCapacity : std::max<std::int64_t>(1, kCapacity * share / busiest);
}

// Returns how a link slows a flow that has a rate there and is as fast as its limit alone.
Contention::Stretch flow_stretch(Rate limit, Rate rate) {
  return static_cast<Contention::Stretch>(
      std::min<Rate>(Contention::kAlone * limit / std::max<Rate>(rate, 1), 0xffffffffU));
}

// Returns whether other ranks slow a transfer so much less than a link that it may be on the link's clock: changes of
// the link's level are not to make them the slowest again and again.
bool hardly_slowed(Contention::Stretch others, Contention::Stretch by_link) { return others + others / 4 <= by_link; }

Contention::Stretch product(std::uint64_t a, std::uint64_t b) {
  return static_cast<Contention::Stretch>(std::min<std::uint64_t>(a * b / Contention::kAlone, 0xffffffffU));
}

}  // namespace

Contention::Contention(const Plan& plan, const Timing& timing, std::size_t least_on_clock)
    : plan_(plan),
      timing_(timing),
      ranks_(plan.classes.size()),
      ends_(plan.classes.size() * kLanes),
      least_on_clock_(least_on_clock) {
  for (const std::uint32_t row : timing.row_of_slot) rows_.push_back(timing.rows[row].data());
  for (LinkId i = 0; i < timing.link_count; ++i) share_.add_link(kCapacity);
}

// Changes by `pressure` the slow-down that running transfers cause to compute on the ranks of class `slot`.
void Contention::press(std::uint32_t slot, std::uint32_t pressure) {
  Rank& rank = ranks_[slot];
  rank.pressure += pressure;
  if (pressure != 0 && rank.compute != kNone) touch(slot);
}

Contention::Stretch Contention::start_transfer(std::span<const TaskId> members) {
  Stretch slowest = kAlone;
  bool settled = true;
  for (const TaskId m : members) {
    const OpTiming& t = timing_of(m);
    const std::uint32_t lane = plan_.tasks[m].lane;
    const std::uint32_t slot = lane / kLanes;
    Rank& rank = ranks_[slot];
    press(slot, t.pressure);
    load(slot, t.memory);
    rank.lanes |= 1U << lane % kLanes;
    if (t.yield != 0) ++rank.yielding;
    Endpoint& end = ends_[lane];
    end.task = m;
    if (on_contested_link(m)) start_flow(m, end);
    end.stretch = end.flow != kNone && share_.rate(end.flow) == 0 ? kUnsettled : end_stretch(end, rank);
    settled &= end.stretch != kUnsettled;
    slowest = std::max(slowest, end.stretch);
  }
  return settled ? slowest : kUnsettled;
}

void Contention::stop_transfer(std::span<const TaskId> members) {
  for (const TaskId m : members) {
    const OpTiming& t = timing_of(m);
    const std::uint32_t lane = plan_.tasks[m].lane;
    const std::uint32_t slot = lane / kLanes;
    ranks_[slot].lanes &= ~(1U << lane % kLanes);
    if (t.yield != 0) --ranks_[slot].yielding;
    press(slot, -t.pressure);
    load(slot, -t.memory);
    take_off_clock(ends_[lane]);
    if (ends_[lane].flow != kNone) share_.remove_flow(std::exchange(ends_[lane].flow, kNone));
  }
}

void Contention::touch(std::uint32_t slot) {
  if (ranks_[slot].dirty) return;
  ranks_[slot].dirty = true;
  dirty_.push_back(slot);
}

bool Contention::on_contested_link(TaskId end) const {
  if (timing_.links.empty()) return false;
  const SlotLinks& links = timing_.links[plan_.tasks[end].lane / kLanes];
  const OpTiming& t = timing_of(end);
  return (t.nic > 0 && links.nic_out != kNone && links.flows[static_cast<std::size_t>(t.group)] > 0) ||
         (t.nvlink > 0 && links.nvlink_out != kNone) || (t.uplink > 0 && links.uplinks[t.uplink_level].out != kNone) ||
         t.host;
}

void Contention::start_flow(TaskId task, Endpoint& end) {
  const std::uint32_t lane = plan_.tasks[task].lane;
  const SlotLinks& links = timing_.links[lane / kLanes];
  const OpTiming& t = timing_of(task);
  const std::int64_t flows = links.flows[static_cast<std::size_t>(t.group)];
  const Rate nic = links.nic_out != kNone ? t.nic : 0;
  const Rate nvlink = links.nvlink_out != kNone ? t.nvlink : 0;
  const UplinkPair& above = links.uplinks[t.uplink_level];
  const Rate uplink = above.out != kNone ? t.uplink : 0;
  Rate busiest = std::min(std::max({nic, nvlink, uplink}), kFullRate);
  for (const Rate share : t.ports) busiest = std::max(busiest, share);
  // One flow stands for the transfers of all groups of a class of ranks. The flow's load on a NIC is that of all the
  // class's groups on the NIC; its load on NVLink is that of one rank; its load on a port (a link that ranks of a node
  // share, such as PCIe) is that of all the class's ranks on the port; its share of the uplinks is already that of all
  // groups.
  std::array<LinkUse, FairShare::kMaxUses> uses;
  std::size_t count = 0;
  const auto use = [&](LinkId link, Rate share, std::int64_t times) {
    uses[count++] = {link, weight(share, busiest) * times};
  };
  // A member whose load on the NIC another member carries (flows is 0) loads it with nothing, but is no faster than the
  // NIC lets the others be, and so takes no more of its other links.
  if (nic > 0 && t.out) use(links.nic_out, nic, flows);
  if (nic > 0 && t.in) use(links.nic_in, nic, flows);
  if (nvlink > 0 && t.out) use(links.nvlink_out, nvlink, 1);
  if (nvlink > 0 && t.in) use(links.nvlink_in, nvlink, 1);
  if (uplink > 0 && t.out) use(above.out, uplink, 1);
  if (uplink > 0 && t.in) use(above.in, uplink, 1);
  for (std::size_t p = 0; p < kPorts; ++p) {
    if (t.ports[p] > 0) use(links.link_of_port[p], t.ports[p], links.ranks_on_port[p]);
  }
  end.flow = share_.add_flow(std::span(uses.data(), count), busiest);
  end.limit = busiest;
  if (end.flow >= lane_of_flow_.size()) lane_of_flow_.resize(end.flow + 1);
  lane_of_flow_[end.flow] = lane;
}

// Returns the slow-down of a rank's compute. Multiprocessors taken by transfers slow what the arithmetic bounds, a
// crowded memory what the memory bounds; an op is bound by one of the two, so the larger slow-down holds.
Contention::Stretch Contention::compute_stretch(const Rank& rank) const {
  return std::max<Stretch>(kAlone + rank.pressure, rank.crowding());
}

Contention::Stretch Contention::end_stretch(const Endpoint& end, const Rank& rank) const {
  const std::uint32_t yield = rank.compute == kNone ? 0 : timing_of(end.task).yield;
  const Stretch held = yield == 0 ? rank.crowding() : product(rank.crowding(), kAlone + yield);
  if (end.flow == kNone) return held;
  const Rate rate = std::max<Rate>(share_.rate(end.flow), 1);
  if (rate == end.limit) return held;
  return product(held, flow_stretch(end.limit, rate));
}

std::span<const TaskId> Contention::members_of(const TaskId& lead) const {
  const std::uint32_t match = plan_.tasks[lead].match;
  return match == kNone ? std::span(&lead, 1) : plan_.members_of(match);
}

TaskId Contention::lead_of(TaskId end) const {
  const std::uint32_t match = plan_.tasks[end].match;
  return match == kNone ? end : plan_.members_of(match).front();
}

// Adds the transfer in this lane (stream) to the list of tasks whose speed may have changed. A transfer is listed once,
// even if several of its ranks change.
void Contention::list(std::uint32_t lane) {
  const TaskId lead = lead_of(ends_[lane].task);
  bool& listed = ends_[plan_.tasks[lead].lane].listed;
  if (!listed) changes_.push_back({lead, kUnsettled});
  listed = true;
}

// Lists a transfer if this rank now slows it more or less than before, or if it is on a clock.
void Contention::list_if_changed(std::uint32_t lane) {
  Endpoint& end = ends_[lane];
  if (end.clock == kNone) {
    const Stretch now = end_stretch(end, ranks_[lane / kLanes]);
    if (now == end.stretch) return;
    end.stretch = now;
  }
  list(lane);
}

// Lists the transfers that a link holds, whose level has changed, or changes the speeds of their clocks.
void Contention::relevel(LinkId link) {
  std::size_t on_clocks = 0;
  const Rate level = share_.level(link);
  if (!clocks_of_link_.empty()) {
    for (std::uint32_t id = clocks_of_link_[link]; id != kNone; id = clocks_[id].next) {
      LinkClock& clock = clocks_[id];
      on_clocks += clock.on;
      const Stretch stretch = level == FlowTable::kNever ? kUnsettled : flow_stretch(clock.limit, level);
      if (stretch == clock.stretch) continue;
      clock.stretch = stretch;
      clock_changes_.push_back({id, stretch});
      if (!hardly_slowed(clock.floor, stretch)) list_all_on(id);
    }
  }
  const std::vector<FlowTable::Entry>& flows = share_.table().links[link].flows;
  if (level == FlowTable::kNever || on_clocks == flows.size()) return;
  for (const FlowTable::Entry entry : flows) {
    if (share_.holder(entry.flow) != link) continue;
    const std::uint32_t lane = lane_of_flow_[entry.flow];
    if (ends_[lane].clock == kNone) list_if_changed(lane);
  }
}

void Contention::list_all_on(std::uint32_t clock) {
  if (clocks_[clock].on == 0) return;
  clocks_[clock].floor = kAlone;
  for (const FlowTable::Entry entry : share_.table().links[clocks_[clock].link].flows) {
    if (ends_[lane_of_flow_[entry.flow]].clock == clock) list(lane_of_flow_[entry.flow]);
  }
}

void Contention::take_off_clock(Endpoint& end) {
  if (end.clock == kNone) return;
  LinkClock& clock = clocks_[end.clock];
  if (--clock.on == 0) clock.floor = kAlone;
  end.clock = kNone;
}

// Finds how fast a listed transfer is now, and whether it is on a clock.
void Contention::find_speed(Change& change) {
  const std::span<const TaskId> members = members_of(change.task);
  change.stretch = kAlone;
  for (const TaskId m : members) {
    Endpoint& end = ends_[plan_.tasks[m].lane];
    if (end.clock != kNone) {
      take_off_clock(end);
      end.stretch = end_stretch(end, ranks_[plan_.slot_of(m)]);
    }
    change.stretch = std::max(change.stretch, end.stretch);
  }
  ends_[plan_.tasks[change.task].lane].listed = false;
  if (least_on_clock_ != kNoClocks && change.stretch != kAlone) put_on_clock(change, members);
}

// Puts a transfer on a clock if a crowded link slows it by itself, and more than all else.
void Contention::put_on_clock(Change& change, std::span<const TaskId> members) {
  Endpoint* slowest = nullptr;
  Stretch others = kAlone;
  for (const TaskId m : members) {
    Endpoint& end = ends_[plan_.tasks[m].lane];
    if (slowest == nullptr && end.stretch == change.stretch) {
      slowest = &end;
    } else {
      others = std::max(others, end.stretch);
    }
  }
  if (slowest == nullptr || slowest->flow == kNone || !hardly_slowed(others, change.stretch)) return;
  const LinkId link = share_.holder(slowest->flow);
  if (link >= FlowTable::kWaiting || share_.table().links[link].flows.size() < least_on_clock_) return;
  if (flow_stretch(slowest->limit, share_.level(link)) != change.stretch) return;
  const OpTiming& t = timing_of(slowest->task);
  const Rank& rank = ranks_[plan_.slot_of(slowest->task)];
  if (rank.crowding() != kAlone || (t.yield != 0 && rank.compute != kNone)) return;
  change.clock = slowest->clock = clock_of(link, slowest->limit);
  LinkClock& clock = clocks_[change.clock];
  clock.floor = std::max(clock.floor, others);
  ++clock.on;
}

// Returns the clock of a link for flows of a limit.
std::uint32_t Contention::clock_of(LinkId link, Rate limit) {
  if (clocks_of_link_.empty()) clocks_of_link_.resize(timing_.link_count, kNone);
  for (std::uint32_t id = clocks_of_link_[link]; id != kNone; id = clocks_[id].next) {
    if (clocks_[id].limit == limit) return id;
  }
  const auto id = static_cast<std::uint32_t>(clocks_.size());
  const Stretch stretch = flow_stretch(limit, share_.level(link));
  clocks_.push_back({link, limit, stretch, kAlone, 0, std::exchange(clocks_of_link_[link], id)});
  clock_changes_.push_back({id, stretch});
  return id;
}

const std::vector<Contention::Change>& Contention::settle() {
  changes_.clear();
  clock_changes_.clear();
  const FairShare::Changes found = share_.update();
  for (const FlowId flow : found.flows) list_if_changed(lane_of_flow_[flow]);
  for (const LinkId link : found.links) relevel(link);
  for (const std::uint32_t slot : dirty_) {
    Rank& rank = ranks_[slot];
    rank.dirty = false;
    for (std::uint32_t lanes = rank.lanes; lanes != 0; lanes &= lanes - 1)
      list_if_changed(slot * kLanes + static_cast<std::uint32_t>(std::countr_zero(lanes)));
  }
  for (Change& c : changes_) find_speed(c);
  for (const std::uint32_t slot : dirty_) {
    if (ranks_[slot].compute != kNone) changes_.push_back({ranks_[slot].compute, compute_stretch(ranks_[slot])});
  }
  dirty_.clear();
  return changes_;
}

}  // namespace orrery
