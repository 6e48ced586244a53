#include "sim/cost/variation.h"

#include <cmath>
#include <map>
#include <utility>

#include "models/base/normal.h"

namespace orrery {
namespace {

// The waits at one collective of the plan, over all its tasks in one row of times.
struct Waits {
  double sum = 0;  // picoseconds
  std::int64_t count = 0;
};
using WaitsOfRow = std::map<std::pair<std::uint32_t, std::uint32_t>, Waits>;  // by row, then op

// The expected largest of as many normal values as a rank's group has ranks; 0 for a group of one.
double largest_of_group(const Plan& plan, Dimension d, std::int64_t rank) {
  const GroupTable& table = plan.dimensions[static_cast<std::size_t>(d)];
  const std::size_t ranks = table.groups[table.member_of[rank]].size();
  return ranks > 1 ? largest_normal(static_cast<double>(ranks)) : 0;
}

// Adds the waits of one class of ranks, whose tasks lie in issue order.
void add_waits(const Plan& plan, std::uint32_t slot, const Variation& variation, const Timing& timing,
               WaitsOfRow& waits) {
  const RankClass& ranks = plan.classes[slot];
  std::map<Dimension, double> largest;
  // Since the last collective: the sum of squares of the kernels' times, and the time of those that clocks limit.
  double squares = 0, clocked = 0;
  for (TaskId t = ranks.begin; t < ranks.end; ++t) {
    const Op& op = plan.op_of(t);
    const std::uint32_t id = plan.tasks[t].op;
    const auto duration = static_cast<double>(timing.of(slot, id).duration);
    if (op.lane == LaneKind::compute && !moves(op)) squares += duration * duration;
    clocked += is_clocked(op) ? duration : 0;
    const auto* c = std::get_if<Collective>(&op.work);
    if (c == nullptr || !meets_in_layers(c->group)) continue;
    const auto [it, fresh] = largest.try_emplace(c->group);
    if (fresh) it->second = largest_of_group(plan, c->group, ranks.representative);
    if (it->second == 0) continue;  // a group of one rank waits for nobody
    Waits& w = waits[{timing.row_of_slot[slot], id}];
    const double of_gpus = variation.gpus * std::exchange(clocked, 0);
    const double of_kernels = variation.kernels * std::sqrt(std::exchange(squares, 0));
    w.sum += it->second * (std::hypot(of_gpus, of_kernels) - of_gpus);
    ++w.count;
  }
}

// Lets a transfer last longer with as many bytes on its links as before.
void lengthen(OpTiming& t, double picoseconds) {
  if (!(picoseconds > 0) || t.duration == 0) return;
  const double before = static_cast<double>(t.duration), share = before / (before + picoseconds);
  t.duration += static_cast<Picoseconds>(picoseconds);
  for (Rate* rate : {&t.nic, &t.nvlink, &t.uplink}) *rate = static_cast<Rate>(static_cast<double>(*rate) * share);
  t.memory = static_cast<std::uint32_t>(t.memory * share);
}

}  // namespace

bool is_clocked(const Op& op) {
  return std::holds_alternative<Gemm>(op.work) || std::holds_alternative<GroupedGemm>(op.work) ||
         std::holds_alternative<FlashAttention>(op.work);
}

bool meets_in_layers(Dimension d) {
  switch (d) {
    case Dimension::tensor:
    case Dimension::context:
    case Dimension::expert:
    case Dimension::kv:
    case Dimension::ulysses:
    case Dimension::expert_tensor:
    case Dimension::tensor_row:
    case Dimension::tensor_column:
    case Dimension::tensor_depth:
      return true;
    default:
      return false;
  }
}

void wait_for_slowest_kernels(const Plan& plan, const Variation& variation, Timing& timing) {
  if (!(variation.kernels > 0)) return;
  WaitsOfRow waits;
  for (std::uint32_t slot = 0; slot < plan.classes.size(); ++slot) {
    if (!plan.classes[slot].server) add_waits(plan, slot, variation, timing, waits);
  }
  for (const auto& [key, w] : waits) lengthen(timing.rows[key.first][key.second], w.sum / static_cast<double>(w.count));
}

}  // namespace orrery
