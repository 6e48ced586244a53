#include "models/planner/activation_offload.h"

#include <algorithm>

namespace orrery {

void ActivationOffload::before_block(const Pass& pass) {
  if (!pass.forward()) release();
}

void ActivationOffload::after_block(const Pass& pass) {
  if (!pass.forward()) return;
  release();
  const Chunk& chunk = chunks_[pass.action.chunk];
  const std::uint32_t frame = chunk.frame_of(pass.action.micro_batch, pass.entry());
  if (!plan_.blocks[plan_.frames[frame].block].release.empty()) leaving_ = frame;
}

void ActivationOffload::release() {
  if (leaving_ == kNone) return;
  for (const std::uint32_t op : plan_.blocks[plan_.frames[leaving_].block].release) writer_.emit(op, leaving_);
  leaving_ = kNone;
}

void ActivationUploads::before_block(const Pass& pass) {
  if (pass.forward() || pass.weights_alone()) return;
  const Chunk& chunk = chunks_[pass.action.chunk];
  for (std::size_t at = pass.at; at < std::min(pass.at + 2, pass.entries.size()); ++at) {
    const std::size_t e = pass.entries[at];
    const Block& block = plan_.blocks[chunk.entries[e].block];
    const std::uint32_t frame = chunk.frame_of(pass.action.micro_batch, e);
    if (block.fetches == 0 || !fetched_.insert(frame).second) continue;
    for (std::uint32_t i = 0; i < block.fetches; ++i) writer_.emit(block.backward[i], frame);
  }
}

}  // namespace orrery
