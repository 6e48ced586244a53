#include "sim/contention.h"

#include <algorithm>
#include <bit>

namespace orrery {
namespace {

constexpr std::int64_t kCapacity = 1 << 20;  // of every port, in units of flow weight

// A port's weight when the flow's rate counts its busiest port: that one has the whole capacity, another its ratio.
std::int64_t weight(Rate share, Rate busiest) { return std::max<std::int64_t>(1, kCapacity * share / busiest); }

Contention::Stretch product(std::uint64_t a, std::uint64_t b) {
  return static_cast<Contention::Stretch>(std::min<std::uint64_t>(a * b / Contention::kAlone, 0xffffffffU));
}

}  // namespace

Contention::Contention(const Plan& plan, const Timing& timing)
    : plan_(plan),
      timing_(timing),
      ranks_(plan.slots.size()),
      end_in_lane_(plan.slots.size() * kLanes, kNone),
      stretch_in_lane_(plan.slots.size() * kLanes, kAlone),
      seen_in_lane_(plan.slots.size() * kLanes, 0) {
  for (const std::uint32_t row : timing.row_of_slot) rows_.push_back(timing.rows[row].data());
  for (LinkId i = 0; i < timing.link_count; ++i) share_.add_link(kCapacity);
  if (timing.links.empty()) return;
  flow_in_lane_.resize(plan.slots.size() * kLanes);
  limit_in_lane_.resize(plan.slots.size() * kLanes);
}

Contention::Stretch Contention::crowd_in(std::uint32_t slot) {
  touch(slot);
  return product(kAlone + ranks_[slot].pressure, crowding(ranks_[slot]));
}

Contention::Stretch Contention::start_transfer(std::span<const TaskId> members) {
  bool flows = false;
  for (const TaskId m : members) {
    const OpTiming& t = timing_of(m);
    const std::uint32_t lane = plan_.tasks[m].lane;
    Rank& rank = ranks_[lane / kLanes];
    rank.pressure += t.pressure;
    rank.transfer_memory += t.memory;
    end_in_lane_[lane] = m;
    if (rank.lanes != 0 || rank.compute != kNone) touch(lane / kLanes);
    rank.lanes |= 1U << lane % kLanes;
    if (on_contested_link(m)) {
      start_flow(m);
      stretch_in_lane_[lane] = kUnsettled;
      flows = true;
    } else {
      stretch_in_lane_[lane] = end_stretch(m);
    }
  }
  return flows ? kUnsettled : transfer_stretch(members.front());
}

void Contention::stop_transfer(std::span<const TaskId> members) {
  for (const TaskId m : members) {
    const OpTiming& t = timing_of(m);
    const std::uint32_t lane = plan_.tasks[m].lane;
    Rank& rank = ranks_[lane / kLanes];
    rank.pressure -= t.pressure;
    rank.transfer_memory -= t.memory;
    end_in_lane_[lane] = kNone;
    rank.lanes &= ~(1U << lane % kLanes);
    if (rank.lanes != 0 || rank.compute != kNone) touch(lane / kLanes);
    if (!on_contested_link(m)) continue;
    share_.remove_flow(flow_in_lane_[lane]);
    unsettled_ = true;
  }
}

void Contention::touch(std::uint32_t slot) {
  unsettled_ = true;
  if (ranks_[slot].dirty) return;
  ranks_[slot].dirty = true;
  dirty_.push_back(slot);
}

bool Contention::on_contested_link(TaskId end) const {
  if (timing_.links.empty()) return false;
  const SlotLinks& links = timing_.links[plan_.tasks[end].lane / kLanes];
  const OpTiming& t = timing_of(end);
  return (t.nic > 0 && links.nic_out != kNone && links.flows[static_cast<std::size_t>(t.group)] > 0) ||
         (t.nvlink > 0 && links.nvlink_out != kNone);
}

void Contention::start_flow(TaskId end) {
  const std::uint32_t lane = plan_.tasks[end].lane;
  const SlotLinks& links = timing_.links[lane / kLanes];
  const OpTiming& t = timing_of(end);
  const std::int64_t flows = links.flows[static_cast<std::size_t>(t.group)];
  const Rate nic = links.nic_out != kNone && flows > 0 ? t.nic : 0;
  const Rate nvlink = links.nvlink_out != kNone ? t.nvlink : 0;
  const Rate busiest = std::min(std::max(nic, nvlink), kFullRate);
  std::array<LinkUse, 4> uses;
  std::size_t count = 0;
  if (nic > 0 && t.out) uses[count++] = {links.nic_out, weight(nic, busiest)};
  if (nic > 0 && t.in) uses[count++] = {links.nic_in, weight(nic, busiest)};
  if (nvlink > 0 && t.out) uses[count++] = {links.nvlink_out, weight(nvlink, busiest)};
  if (nvlink > 0 && t.in) uses[count++] = {links.nvlink_in, weight(nvlink, busiest)};
  const FlowId flow = share_.add_flow(std::span(uses.data(), count), busiest, nic > 0 ? flows : 1);
  if (flow >= end_of_flow_.size()) end_of_flow_.resize(flow + 1, kNone);
  end_of_flow_[flow] = end;
  flow_in_lane_[lane] = flow;
  limit_in_lane_[lane] = busiest;
  unsettled_ = true;
}

Contention::Stretch Contention::crowding(const Rank& rank) const {
  return std::max(kAlone, rank.transfer_memory + (rank.compute == kNone ? 0 : timing_of(rank.compute).memory));
}

Contention::Stretch Contention::end_stretch(TaskId end) const {
  const std::uint32_t lane = plan_.tasks[end].lane;
  const Stretch crowded = crowding(ranks_[lane / kLanes]);
  if (!on_contested_link(end)) return crowded;
  const Rate rate = std::max<Rate>(share_.rate(flow_in_lane_[lane]), 1);
  return product(crowded, static_cast<std::uint64_t>(kAlone * limit_in_lane_[lane] / rate));
}

Contention::Stretch Contention::transfer_stretch(TaskId lead) const {
  const std::uint32_t match = plan_.tasks[lead].match;
  if (match == kNone) return stretch_in_lane_[plan_.tasks[lead].lane];
  Stretch slowest = kAlone;
  for (const TaskId m : plan_.members_of(match)) slowest = std::max(slowest, stretch_in_lane_[plan_.tasks[m].lane]);
  return slowest;
}

TaskId Contention::lead_of(TaskId end) const {
  const std::uint32_t match = plan_.tasks[end].match;
  return match == kNone ? end : plan_.members_of(match).front();
}

// An end that is held up as before changes nothing for its transfer; several ends of one transfer change it once.
void Contention::look_at(TaskId end) {
  const Stretch now = end_stretch(end);
  Stretch& before = stretch_in_lane_[plan_.tasks[end].lane];
  if (now == before) return;
  before = now;
  const TaskId lead = lead_of(end);
  std::uint64_t& seen = seen_in_lane_[plan_.tasks[lead].lane];
  if (seen == settles_) return;
  seen = settles_;
  changes_.push_back({lead, kUnsettled});
}

const std::vector<Contention::Change>& Contention::settle() {
  changes_.clear();
  ++settles_;
  for (const FlowId flow : share_.update()) look_at(end_of_flow_[flow]);
  for (const std::uint32_t slot : dirty_) {
    Rank& rank = ranks_[slot];
    rank.dirty = false;
    if (rank.compute != kNone) changes_.push_back({rank.compute, product(kAlone + rank.pressure, crowding(rank))});
    for (std::uint32_t lanes = rank.lanes; lanes != 0; lanes &= lanes - 1) {
      look_at(end_in_lane_[slot * kLanes + static_cast<std::uint32_t>(std::countr_zero(lanes))]);
    }
  }
  dirty_.clear();
  unsettled_ = false;
  for (Change& c : changes_) {
    if (c.stretch == kUnsettled) c.stretch = transfer_stretch(c.task);
  }
  return changes_;
}

}  // namespace orrery
