#include "sim/cost/host_overheads.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "models/base/units.h"
#include "models/cost/host_time.h"
#include "models/layers/blocks.h"
#include "models/layout/placement.h"

namespace orrery {

double woven_us(const Spec& spec) {
  constexpr int kNodes = 4, kNodeCalls = 4;
  return spec.strategy.overlap.micro_batches ? kNodes * kNodeCalls * spec.software.host.call_us : 0;
}

void add_host_overheads(const Plan& plan, const Software& software, double far_us, std::vector<OpTiming>& row) {
  const auto add = [&](std::span<const std::uint32_t> ops, double us) {
    if (ops.empty()) return;
    const Picoseconds all = picoseconds(us * kMicrosecond), each = all / static_cast<Picoseconds>(ops.size());
    for (const std::uint32_t op : ops) row[op].issue += each;
    row[ops.front()].issue += all - each * static_cast<Picoseconds>(ops.size());
  };
  const auto last_of = [](const std::vector<std::uint32_t>& pass) {
    return std::span(pass).last(std::min<std::size_t>(1, pass.size()));
  };
  // Finds whether a stage begins its forward with this block (embedding or receive), or its backward (output or
  // exchange with the next stage). If all stages share the vocabulary (each holds a part of it), every stage has a part
  // of the embedding lookups and of the logits.
  const bool shared = std::any_of(plan.blocks.begin(), plan.blocks.end(),
                                  [](const Block& block) { return block.role == BlockRole::exchange; });
  for (const Block& block : plan.blocks) {
    const bool looks_up = !block.parameters.empty() && block.parameters.front().name == kEmbeddingTable;
    // A second model's embedding or receive begins no other micro-batch than that of the model that trains.
    const bool first =
        !block.second &&
        (block.role == BlockRole::embedding ? !shared || looks_up : block.role == BlockRole::receive && !shared);
    const bool last = block.role == BlockRole::output || (block.role == BlockRole::send && !shared);
    if (block.role == BlockRole::layer || block.role == BlockRole::vision) {
      const LayerHostTime own = layer_host_time(plan, block, software);
      add(block.forward, own.forward / kMicrosecond + far_us);
      add(block.backward, own.backward / kMicrosecond + far_us);
    }
    if (first) add(last_of(block.forward), software.host.micro_batch_us);
    if (last) add(last_of(block.backward), software.host.micro_batch_us);
  }
  // The host's overhead per step is added to the op after which the host reads the loss; if there is no such op, it is
  // divided among the ops that update the weights.
  const auto reads_loss = [](const Op& op) {
    const auto* wait = std::get_if<Wait>(&op.work);
    return wait != nullptr && wait->device && op.phase == Phase::step;
  };
  const bool reads = std::any_of(plan.ops.begin(), plan.ops.end(), reads_loss);
  const auto updating = [&](const Op& op) { return reads ? reads_loss(op) : std::holds_alternative<Update>(op.work); };
  const auto parts = std::count_if(plan.tasks.begin(), plan.tasks.begin() + plan.task_count(),
                                   [&](const Task& task) { return updating(plan.ops[task.op]); });
  const auto who = std::count_if(plan.classes.begin(), plan.classes.end(),
                                 [&](const RankClass& slot) { return reads || updates(plan, slot); });
  const double all = (software.host.step_us + static_cast<double>(plan.ranks) * software.host.rank_us) *
                     static_cast<double>(who * plan.steps) * kMicrosecond;
  const Picoseconds each = picoseconds(all / static_cast<double>(std::max<std::ptrdiff_t>(1, parts)));
  for (std::size_t i = 0; i < row.size(); ++i) row[i].issue += updating(plan.ops[i]) ? each : 0;
}

void scale_host(double factor, std::vector<OpTiming>& row) {
  if (factor == 1) return;
  for (OpTiming& t : row) t.issue = picoseconds(seconds(t.issue) * factor);
}

}  // namespace orrery
