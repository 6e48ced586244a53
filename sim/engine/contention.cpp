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

Contention::Stretch product(std::uint64_t a, std::uint64_t b) {
  return static_cast<Contention::Stretch>(std::min<std::uint64_t>(a * b / Contention::kAlone, 0xffffffffU));
}

}  // namespace

Contention::Contention(const Plan& plan, const Timing& timing)
    : plan_(plan), timing_(timing), ranks_(plan.classes.size()), ends_(plan.classes.size() * kLanes) {
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
  return product(held, static_cast<std::uint64_t>(kAlone * end.limit / rate));
}

Contention::Stretch Contention::transfer_stretch(TaskId lead) const {
  const std::uint32_t match = plan_.tasks[lead].match;
  if (match == kNone) return ends_[plan_.tasks[lead].lane].stretch;
  Stretch slowest = kAlone;
  for (const TaskId m : plan_.members_of(match)) slowest = std::max(slowest, ends_[plan_.tasks[m].lane].stretch);
  return slowest;
}

TaskId Contention::lead_of(TaskId end) const {
  const std::uint32_t match = plan_.tasks[end].match;
  return match == kNone ? end : plan_.members_of(match).front();
}

// If this rank now slows the transfer in this lane (stream) more or less than before, adds the transfer to the list of
// tasks whose speed may have changed. A transfer is listed once, even if several of its ranks change.
void Contention::list_if_changed(std::uint32_t lane) {
  Endpoint& end = ends_[lane];
  const Stretch now = end_stretch(end, ranks_[lane / kLanes]);
  if (now == end.stretch) return;
  end.stretch = now;
  const TaskId lead = lead_of(end.task);
  bool& listed = ends_[plan_.tasks[lead].lane].listed;
  if (!listed) changes_.push_back({lead, kUnsettled});
  listed = true;
}

const std::vector<Contention::Change>& Contention::settle() {
  changes_.clear();
  for (const FlowId flow : share_.update()) list_if_changed(lane_of_flow_[flow]);
  for (const std::uint32_t slot : dirty_) {
    Rank& rank = ranks_[slot];
    rank.dirty = false;
    for (std::uint32_t lanes = rank.lanes; lanes != 0; lanes &= lanes - 1)
      list_if_changed(slot * kLanes + static_cast<std::uint32_t>(std::countr_zero(lanes)));
  }
  for (Change& c : changes_) {
    c.stretch = transfer_stretch(c.task);
    ends_[plan_.tasks[c.task].lane].listed = false;
  }
  for (const std::uint32_t slot : dirty_) {
    if (ranks_[slot].compute != kNone) changes_.push_back({ranks_[slot].compute, compute_stretch(ranks_[slot])});
  }
  dirty_.clear();
  return changes_;
}

}  // namespace orrery
