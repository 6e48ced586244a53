#include "sim/memory/state_tensors.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include "models/layers/blocks.h"

namespace orrery {
namespace {

bool is_gradient(const Operand& o) { return o.scope == Scope::state && o.slot == kGradients; }

}  // namespace

StateTensors::StateTensors(const Plan& plan, const std::vector<std::uint32_t>& frames, bool moments, bool gradients,
                           BlockSource& blocks)
    : plan_(plan), blocks_(blocks), moments_(moments) {
  if (!moments && !gradients) return;
  std::set<std::pair<std::uint32_t, std::int64_t>> known;
  for (const std::uint32_t f : frames) {
    const Frame& frame = plan.frames[f];
    const Block& block = plan.blocks[frame.block];
    if (gradients && block.role == BlockRole::state) {
      const BlockBuffer &sums = block.buffers[kGradients], &whole = block.buffers[kParameters];
      if (sums.bytes > 0 && sums.bytes == whole.bytes && sums.home == MemoryTier::device)
        gradient_width_ = plan.element_bytes;
    }
    if (frame.state == kNone || block.parameter_elements == 0 || !known.insert({frame.state, frame.base}).second)
      continue;
    for (const LocalParameter& p : block.parameters) {
      if (!p.frozen) weights_[frame.state].push_back(p.out * p.in);
    }
  }
}

void StateTensors::take_moments(std::uint32_t state, Picoseconds now) {
  // number of elements of each trained weight of the chunk of layers
  const std::vector<std::int64_t>& weights = weights_[state];
  const auto all = static_cast<double>(std::accumulate(weights.begin(), weights.end(), std::int64_t{0}));
  for (const std::int64_t elements : weights) {
    for (const BlockBuffer& what : plan_.blocks[plan_.frames[state].block].buffers) {
      if (!what.lazy || what.bytes == 0 || what.home != MemoryTier::device) continue;
      const double part = static_cast<double>(elements) / all * static_cast<double>(what.bytes);
      blocks_.take(std::max<Bytes>(1, std::llround(part)), what.category, now);
    }
  }
}

void StateTensors::change_gradients(TaskId t, const std::function<std::optional<BlockId>()>& made, Picoseconds now) {
  const Frame& frame = plan_.frames[plan_.tasks[t].frame];
  const Op& op = plan_.op_of(t);
  for (const Operand& o : op.operands) {
    if (!is_gradient(o) || o.access == Access::read) continue;
    const std::uint32_t state = frame_of(plan_, plan_.tasks[t].frame, o);
    if (std::holds_alternative<Fill>(op.work)) give_gradients(state, 0);
    if (o.parameter < 0) continue;
    const LocalParameter& p = plan_.blocks[frame.block].parameters[static_cast<std::size_t>(o.parameter)];
    std::map<std::int64_t, BlockId>& gradients = gradients_[state];
    if (gradients.count(frame.base + p.offset) != 0) continue;
    const std::optional<BlockId> there = std::holds_alternative<Accumulate>(op.work) ? made() : std::nullopt;
    gradients[frame.base + p.offset] =
        there ? *there : blocks_.take(p.out * p.in * gradient_width_, Category::gradients, now);
  }
}

void StateTensors::give_gradients(std::uint32_t state, Bytes left) {
  std::map<std::int64_t, BlockId>& gradients = gradients_[state];
  Bytes held = 0;
  for (const auto& [place, block] : gradients) held += blocks_.size(block);
  while (!gradients.empty() && held > left) {
    const auto last = std::prev(gradients.end());
    held -= blocks_.size(last->second);
    blocks_.give(last->second, Category::gradients);
    gradients.erase(last);
  }
}

}  // namespace orrery
