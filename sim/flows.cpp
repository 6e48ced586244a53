#include "sim/flows.h"

#include <algorithm>
#include <array>

namespace orrery {
namespace {

constexpr std::int64_t kCapacity = 1 << 20;  // of every port, in units of flow weight

// A port's weight when the flow's rate counts the busier port: that one has the whole capacity, the other its ratio.
std::int64_t weight(Rate share, Rate busiest) { return std::max<std::int64_t>(1, kCapacity * share / busiest); }

}  // namespace

Flows::Flows(const Plan& plan, const Timing& timing) : plan_(plan), timing_(timing) {
  for (LinkId i = 0; i < timing.link_count; ++i) share_.add_link(kCapacity);
  if (timing.links.empty()) return;
  flow_of_lane_.resize(plan.slots.size() * kLanes);
  limit_of_lane_.resize(plan.slots.size() * kLanes);
}

bool Flows::shared(std::uint32_t slot, std::uint32_t op) const {
  if (timing_.links.empty()) return false;
  const SlotLinks& links = timing_.links[slot];
  const OpTiming& t = timing_.of(slot, op);
  return (t.nic > 0 && links.nic_out != kNone) || (t.nvlink > 0 && links.nvlink_out != kNone);
}

void Flows::start(TaskId task) {
  const std::uint32_t lane = plan_.tasks[task].lane;
  const SlotLinks& links = timing_.links[lane / kLanes];
  const OpTiming& t = timing_.of(lane / kLanes, plan_.tasks[task].op);
  const Rate nic = links.nic_out != kNone ? t.nic : 0;
  const Rate nvlink = links.nvlink_out != kNone ? t.nvlink : 0;
  const Rate busiest = std::min(std::max(nic, nvlink), kFullRate);
  std::array<LinkUse, 4> uses;
  std::size_t count = 0;
  if (nic > 0 && t.out) uses[count++] = {links.nic_out, weight(nic, busiest)};
  if (nic > 0 && t.in) uses[count++] = {links.nic_in, weight(nic, busiest)};
  if (nvlink > 0 && t.out) uses[count++] = {links.nvlink_out, weight(nvlink, busiest)};
  if (nvlink > 0 && t.in) uses[count++] = {links.nvlink_in, weight(nvlink, busiest)};
  const FlowId flow = share_.add_flow(std::span(uses.data(), count), busiest, nic > 0 ? links.sharers : 1);
  if (flow >= task_of_.size()) task_of_.resize(flow + 1, kNone);
  task_of_[flow] = task;
  flow_of_lane_[lane] = flow;
  limit_of_lane_[lane] = busiest;
  unsettled_ = true;
}

void Flows::stop(TaskId task) {
  share_.remove_flow(flow_of_lane_[plan_.tasks[task].lane]);
  unsettled_ = true;
}

std::uint32_t Flows::stretch(TaskId task) const {
  const std::uint32_t lane = plan_.tasks[task].lane;
  const Rate rate = std::max<Rate>(share_.rate(flow_of_lane_[lane]), 1);
  return static_cast<std::uint32_t>(std::min<Rate>(65536 * limit_of_lane_[lane] / rate, 0xffffffff));
}

}  // namespace orrery
