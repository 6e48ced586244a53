#include "models/cost/host_time.h"

#include <algorithm>
#include <variant>

#include "models/cost/kernel_time.h"

namespace orrery {

Seconds host_time(const Op& op, const Software& software) {
  if (graphs_step(software) || op.within || op.same_call) return 0;
  const auto* moved = std::get_if<Collective>(&op.work);
  if (moved != nullptr && (moved->algorithm == kUserBuffers || moved->algorithm == kCopyEngines))
    return software.host.launch_us * kMicrosecond;
  const auto* product = std::get_if<Gemm>(&op.work);
  const double pieces = product != nullptr ? static_cast<double>(product->pieces) : 1;
  const bool by_autograd = op.phase != Phase::forward && op.phase != Phase::step && !op.recompute;
  const double calls =
      software.kernels.compile
          ? 0
          : software.host.call_us * (by_autograd ? software.host.backward_call_share : 1) * calls_of(op.work) / pieces;
  const double launch = moves(op) ? software.host.collective_launch_us : software.host.launch_us * kernels_of(op.work);
  return (calls + launch) * kMicrosecond;
}

Seconds served_host_time(const Op& op, const Software& software, const Profile& profile) {
  if (software.kernels.cuda_graphs || op.within || op.same_call) return 0;
  const double launch_us = moves(op) ? software.host.collective_launch_us : software.host.launch_us;
  return launch_us * kMicrosecond * kernels_of(op.work, profile);
}

bool is_calibrated(const Profile& profile) { return !profile.measured.empty() && !profile.rest_built_in; }

Seconds issue_time(const Op& op, const Software& software, const Profile& profile) {
  const bool replayed = software.kernels.cuda_graphs && op.same_call && !profile.generates;
  if (is_calibrated(profile) && !graphs_step(software)) return replayed ? 0 : profile.measured.issue;
  return profile.generates ? served_host_time(op, software, profile) : host_time(op, software);
}

LayerHostTime layer_host_time(const Plan& plan, const Block& block, const Software& software) {
  if (block.role != BlockRole::layer && block.role != BlockRole::vision) return {};
  const auto again = std::ranges::count_if(block.backward, [&](std::uint32_t op) { return plan.ops[op].recompute; });
  // The forward ops that recomputation can repeat: all except copies of activations to another memory tier and waits
  // for these copies, which recomputation does not run again.
  const auto all = std::ranges::count_if(block.forward, [&](std::uint32_t op) {
    const Work& work = plan.ops[op].work;
    return !std::holds_alternative<PlaceCopy>(work) && !std::holds_alternative<Wait>(work);
  });
  const double share = std::min(1.0, static_cast<double>(again) / static_cast<double>(std::max<std::int64_t>(1, all)));
  // Python does not call what a CUDA graph holds, but for the replay.
  const auto called = [&](const std::vector<std::uint32_t>& pass) {
    const auto calls = std::ranges::count_if(pass, [&](std::uint32_t op) { return !plan.ops[op].same_call; });
    return static_cast<double>(calls) / static_cast<double>(std::max<std::size_t>(1, pass.size()));
  };
  const Seconds layer = software.host.layer_us * kMicrosecond;
  return {layer * called(block.forward), layer * (1 + share) * called(block.backward)};
}

}  // namespace orrery
