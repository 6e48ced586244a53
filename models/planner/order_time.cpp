#include "models/planner/order_time.h"

#include <algorithm>
#include <numeric>
#include <variant>

#include "models/base/data.h"
#include "models/base/error.h"
#include "models/cost/host_time.h"
#include "models/cost/kernel_time.h"
#include "models/cost/nccl/log.h"

namespace orrery {
namespace {

constexpr double kNanoseconds = 1e9;

std::optional<Profile> built_in(const Gpu& gpu) {
  if (gpu.memory_bytes == 0) return std::nullopt;
  try {
    Profile profile = find_profile(gpu);
    if (has_formulas(profile)) return profile;
  } catch (const Error&) {  // the GPU has no built-in profile
  }
  return std::nullopt;
}

}  // namespace

OrderClock::OrderClock(const Spec& spec, const std::vector<GroupTable>& groups)
    : spec_(spec), groups_(groups), profile_(built_in(spec.cluster.gpu)) {}

double OrderClock::at_peaks(const Op& op, Bytes width) const {
  const Gpu& gpu = spec_.cluster.gpu;
  const bool known = !gpu.tflops.empty() && gpu.memory_GBps > 0;
  const Cost cost = cost_of(op.work, width);
  const auto* c = std::get_if<Collective>(&op.work);
  if (known && c != nullptr) return static_cast<double>(c->bytes) / std::max(pair_GBps(gpu), gpu.pcie_GBps);
  if (!known) return cost.flops * 1e-3;
  return kNanoseconds * std::max(cost.flops / peak_flops(gpu, op.precision), cost.bytes / (gpu.memory_GBps * 1e9));
}

// Returns, for the process group of a dimension that has the first rank, the number of its members on each node.
std::vector<int> OrderClock::members(Dimension d) const {
  const GroupTable& table = groups_[static_cast<std::size_t>(d)];
  if (table.groups.empty()) return {1};
  std::map<std::int64_t, int> by_node;
  for (const std::int64_t rank : table.groups[table.member_of.front()]) ++by_node[rank / nccl_node_gpus(spec_.cluster)];
  std::vector<int> members;
  for (const auto& [node, count] : by_node) members.push_back(count);
  return members;
}

const NcclModel& OrderClock::model(const std::vector<int>& members) {
  const auto it = models_.find(members);
  if (it != models_.end()) return it->second;
  const NcclJob job = {spec_.software.communication.nccl_minor,
                       std::accumulate(members.begin(), members.end(), std::int64_t{0})};
  return models_.emplace(members, nccl_model(spec_.cluster, members, job, {})).first->second;
}

double OrderClock::time(const Op& op, Bytes width) {
  const auto* copy = std::get_if<PlaceCopy>(&op.work);
  if (copy != nullptr && copy->from != copy->to) return 0;
  if (!profile_) return at_peaks(op, width);
  if (const auto* c = std::get_if<Collective>(&op.work)) {
    const std::vector<int> lie = members(c->group);
    const bool alone = lie.size() == 1 && lie.front() == 1;
    return alone ? at_peaks(op, width) : kNanoseconds * nccl_choose(model(lie), c->kind, c->bytes).seconds;
  }
  const double gaps = profile_->kernel_gap_us * kMicrosecond * static_cast<double>(kernels_of(op.work));
  const double kernel = kernel_time(op, width, spec_.cluster.gpu, *profile_,
                                    name_in(kFlashKernels, spec_.software.kernels.attention_kernel));
  return kNanoseconds * (kernel + gaps);
}

OrderLength OrderClock::length(const Op& op, Bytes width) {
  return {time(op, width), kNanoseconds * host_time(op, spec_.software)};
}

std::array<OrderLength, 2> OrderClock::overhead(const Plan& plan, const Block& block) const {
  if (graphs_step(spec_.software)) return {};
  const LayerHostTime layer = layer_host_time(plan, block, spec_.software);
  return {OrderLength{0, kNanoseconds * layer.forward}, OrderLength{0, kNanoseconds * layer.backward}};
}

}  // namespace orrery
