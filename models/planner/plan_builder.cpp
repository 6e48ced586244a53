#include "models/planner/plan_builder.h"

#include <algorithm>

namespace orrery {

PlanBuilder::PlanBuilder(Draft& draft, TaskWriter& writer, PostValidation* validation)
    : StepPart(draft, writer), validation_(validation) {
  writer.watch(*this);
}

void PlanBuilder::begin_slot() {
  gathered_.clear();
  reduced_.clear();
  released_.clear();
  arrived_.clear();
  staged_.clear();
  fetched_.clear();
  leaving_ = kNone;
  updates_ = 0;
}

void PlanBuilder::issued(const Op& op, std::uint32_t frame, TaskId task) {
  for (const Operand& operand : op.frees) {
    if (operand.scope != Scope::unit || operand.slot != kGathered) continue;
    gathered_[frame_of(plan_, frame, operand)] = false;
    released_.push_back(task);
  }
}

void PlanBuilder::before_block(const Pass& pass) {
  const bool forward = pass.forward(), weights = pass.weights_alone();
  if (!forward) release_activations();
  if (row_.shards_parameters && !weights) gather_for(pass.action, pass.at, pass.entries);
  if (!forward && !weights) fetch_activations(pass);
  if (forward) gather_ahead(chunks_[pass.action.chunk].entries[pass.entry()].unit);
}

void PlanBuilder::before_op(const Pass& pass, std::span<const std::uint32_t> ops) {
  if (row_.shards_parameters && spec_.strategy.offload.tiling > 1)
    gather_tiles(chunks_[pass.action.chunk].frame_of(pass.action.micro_batch, pass.entry()), ops,
                 pass.forward() ? Phase::forward : Phase::backward);
}

void PlanBuilder::after_backward_op(const Pass& pass, std::size_t e, std::uint32_t op, TaskId task) {
  Chunk& chunk = chunks_[pass.action.chunk];
  reduce_full_buckets(chunk, e, plan_.ops[op], task);
  if (row_.shards_parameters && spec_.strategy.offload.tiling > 1)
    reduce_tiles(chunk, chunk.frame_of(pass.action.micro_batch, e), op);
}

void PlanBuilder::after_block(const Pass& pass) {
  const Chunk& chunk = chunks_[pass.action.chunk];
  const Entry& entry = chunk.entries[pass.entry()];
  if (pass.ends_backward() && facts_.unit_gradients && reduces_apart(entry))
    reduce_unit(entry.owns ? chunk : draft_.table_chunk(), entry.unit);
  if (!pass.forward()) return;
  release_activations();
  if (!plan_.blocks[entry.block].release.empty()) leaving_ = chunk.frame_of(pass.action.micro_batch, pass.entry());
}

// Uploads activations from the host while the block before runs back: those of this entry and of the next.
void PlanBuilder::fetch_activations(const Pass& pass) {
  const Chunk& chunk = chunks_[pass.action.chunk];
  for (std::size_t at = pass.at; at < std::min(pass.at + 2, pass.entries.size()); ++at) {
    const std::size_t e = pass.entries[at];
    const Block& block = plan_.blocks[chunk.entries[e].block];
    const std::uint32_t frame = chunk.frames[pass.action.micro_batch * chunk.entries.size() + e];
    if (block.fetches == 0 || !fetched_.insert(frame).second) continue;
    for (std::uint32_t i = 0; i < block.fetches; ++i) writer_.emit(block.backward[i], frame);
  }
}

// Gives up the device's copy of activations that leave for the host when the block after them has been issued, or
// before anything runs back (Transformer Engine's cpu_offload waits as late: synchronize_on_group_commit_forward).
void PlanBuilder::release_activations() {
  if (leaving_ == kNone) return;
  for (const std::uint32_t op : plan_.blocks[plan_.frames[leaving_].block].release) writer_.emit(op, leaving_);
  leaving_ = kNone;
}

}  // namespace orrery
