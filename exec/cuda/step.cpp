// This file runs ops that a GPU computes once per step: casts, sums of gradients, the gradient norm, the optimizer
// update.
#include "exec/cuda/call.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/update.h"

namespace orrery::cuda {

void run_cast(const CudaCall& c, const Cast& work) {
  gpu::cast(work.elements, {c.reads[0].data, type_of(work.from)}, {c.writes[0].data, type_of(work.to)}, c.stream);
}

void run_accumulate(const CudaCall& c, const Accumulate& work) {
  const Argument& target = c.gradients.empty() ? c.updates[0] : c.gradients[0];
  gpu::accumulate(work.elements, {c.reads[0].data, type_of(work.from)}, {target.data, type_of(work.to)}, c.stream);
}

void run_squared_norm(const CudaCall& c, const SquaredNorm&) {
  const Argument& gradients = c.reads[0];
  double* total = c.gpu_state.norm(c.op.lane);
  ORRERY_CHECK_CUDA(cudaMemsetAsync(total, 0, sizeof(double), c.stream));
  for (const Stretch& s : norm_stretches(c, gradients))
    gpu::add_squared_norm(s.count, CudaCall::flat(gradients, s.first), total, c.gpu_state.norm_workspace(c.op.lane),
                          c.stream);
  const bool adds = !c.updates.empty();
  gpu::store_sum(total, adds, CudaCall::floats(adds ? c.updates[0] : c.writes[0]), c.stream);
}

void run_multiply(const CudaCall& c, const Multiply& work) {
  if (work.factor != 0) {
    const Argument& to = c.updates.empty() ? c.writes[0] : c.updates[0];
    const Argument& from = c.updates.empty() ? c.reads[0] : c.updates[0];
    const auto place = [&](const Argument& a) {
      // The fused buffer of a rank (Scope::rank) holds one bucket and begins with element work.first of the gradients;
      // other buffers begin with element 0
      const std::int64_t first = a.operand.scope == Scope::rank ? 0 : work.first;
      return gpu::Array{a.data + first * work.width, type_of(work.width)};
    };
    gpu::multiply(work.elements, {.value = work.factor}, place(from), place(to), nullptr, c.stream);
    return;
  }
  const gpu::Factor clip = {.squared_norm = CudaCall::floats(c.reads[0]), .limit = c.state.training.clip};
  const Argument& gradients = c.updates[0];
  for (const Piece& piece : pieces_of(c)) {
    const gpu::Array g = CudaCall::flat(gradients, offset_of(gradients, piece));
    gpu::multiply(piece.owned, clip, g, g, nullptr, c.stream);
  }
}

void run_update(const CudaCall& c, const Update& work) {
  const Argument& gradients = c.reads[0];
  const Argument& forward = c.writes[0];
  gpu::Factor clip;
  if (c.reads.size() > 1) clip = {.squared_norm = CudaCall::floats(c.reads[1]), .limit = c.state.training.clip};
  const kernels::UpdateStep step = {c.step() + 1, 1};
  const bool master = c.updates[0].data != nullptr;
  for (const Piece& piece : pieces_of(c)) {
    if (piece.owned == 0) continue;
    const gpu::Array copy = CudaCall::flat(forward, offset_of(forward, piece));
    const gpu::Array weights =
        master ? gpu::Array{CudaCall::floats(c.updates[0], piece.shard_first), gpu::Type::fp32} : copy;
    float* first = work.moments > 0 ? CudaCall::floats(c.updates[1], piece.shard_first) : nullptr;
    float* second = work.moments > 0 ? CudaCall::floats(c.updates[2], piece.shard_first) : nullptr;
    gpu::update(c.state.training.rule, step, clip, piece.owned, CudaCall::flat(gradients, offset_of(gradients, piece)),
                weights, first, second, master ? copy : gpu::Array{nullptr, copy.type}, c.stream);
  }
}

}  // namespace orrery::cuda
