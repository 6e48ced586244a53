#include "exec/cuda/state.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "exec/cuda/call.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/norm.h"
#include "models/base/error.h"

namespace orrery::cuda {
namespace {

namespace gpu = kernels::cuda;

// Bytes for the sum of squares of the gradients, padded so that the scratch memory that follows it is aligned.
constexpr Bytes kNormBytes = 16;

struct WorkspaceOf {
  gpu::Type type;

  std::int64_t operator()(const FlashAttention& a) const {
    if (a.direction == Direction::forward) return 0;
    const gpu::ConstHeads q = {nullptr, type, a.batch, a.query, a.heads, a.head_dim, a.heads * a.head_dim};
    const gpu::ConstHeads k = {nullptr, type, a.batch, a.key, a.kv_heads, a.head_dim, a.kv_heads * a.head_dim};
    return gpu::attention_gradient_workspace(q, k);
  }
  std::int64_t operator()(const Normalize& n) const {
    return n.direction == Direction::forward ? 0 : gpu::norm_gradient_workspace(n.rows, n.columns);
  }
  std::int64_t operator()(const Embedding& e) const {
    const bool rows = e.direction == Direction::forward || e.positions;
    return rows ? 0 : gpu::embed_gradient_workspace(e.rows, e.vocab);
  }
  std::int64_t operator()(const BiasGradient& b) const { return gpu::bias_gradient_workspace(b.rows, b.columns); }
  template <class Other>
  std::int64_t operator()(const Other&) const {
    return 0;
  }
};

}  // namespace

Bytes workspace_bytes(const Rank& rank) {
  const WorkspaceOf workspace{rank.plan.element_bytes == 4 ? gpu::Type::fp32 : gpu::Type::bf16};
  Bytes most = 0;
  for (const Op& op : rank.plan.ops) most = std::max<Bytes>(most, std::visit(workspace, op.work));
  return most;
}

CudaState::CudaState(RunState& state, std::span<std::byte> workspace)
    : run(state),
      workspace_(workspace),
      waits_for_each_task_(std::getenv("ORRERY_CUDA_SYNC") != nullptr),
      sums_(Memory::Place::device, sizeof(double)) {
  const Bytes needed = workspace_bytes(state.rank);
  if (needed > static_cast<Bytes>(workspace.size())) {
    own_workspace_ = Memory(Memory::Place::device, needed);
    workspace_ = {own_workspace_.data(), static_cast<std::size_t>(needed)};
  }
  place_on_host();
  for (const Op& op : state.rank.plan.ops) {
    if (std::holds_alternative<SquaredNorm>(op.work))
      norms_.try_emplace(op.lane, Memory::Place::device, kNormBytes + gpu::squared_norm_workspace());
  }
  const std::size_t bytes = state.rotary.cosine.size() * sizeof(float);
  if (bytes == 0) return;
  rotary_ = Memory(Memory::Place::device, static_cast<Bytes>(2 * bytes));
  ORRERY_CHECK_CUDA(cudaMemcpy(rotary_.data(), state.rotary.cosine.data(), bytes, cudaMemcpyHostToDevice));
  ORRERY_CHECK_CUDA(cudaMemcpy(rotary_.data() + bytes, state.rotary.sine.data(), bytes, cudaMemcpyHostToDevice));
}

// Allocates host memory for token ids (host to device) and for scalars (device to host). Every task has a separate part
// of the memory, because the host runs ahead of the device.
void CudaState::place_on_host() {
  Bytes texts = 0, numbers = 0;
  const Plan& plan = run.rank.plan;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const Op& op = plan.op_of(t);
    if (const auto* load = std::get_if<Load>(&op.work)) {
      text_at_[t] = texts;
      texts += load->rows * static_cast<Bytes>(sizeof(std::int64_t));
    }
    if (!runs_on_host(op.lane)) continue;
    numbers_at_[t] = numbers;
    for (const Operand& o : op.operands) numbers += o.scope == Scope::rank ? static_cast<Bytes>(sizeof(float)) : 0;
  }
  text_ = Memory(Memory::Place::host, texts);
  numbers_ = Memory(Memory::Place::host, numbers);
}

void CudaState::begin_step(cudaStream_t stream) {
  ORRERY_CHECK_CUDA(cudaMemsetAsync(loss(), 0, sizeof(double), stream));
}

void CudaState::end_step() {
  ORRERY_CHECK_CUDA(cudaMemcpy(&run.losses[0].sum, loss(), sizeof(double), cudaMemcpyDeviceToHost));
}

kernels::cuda::Workspace CudaState::workspace(std::int64_t bytes) const {
  if (bytes > static_cast<std::int64_t>(workspace_.size()))
    throw Error(fmt::format("a kernel asks for {} bytes of workspace, there are {}", bytes, workspace_.size()), 1);
  return {workspace_.data(), bytes};
}

kernels::cuda::DeviceRotaryTable CudaState::rotary() const {
  const auto* cosine = reinterpret_cast<const float*>(rotary_.data());
  return {run.rotary.half, cosine, cosine + run.rotary.cosine.size()};
}

kernels::cuda::Workspace CudaState::norm_workspace(LaneKind lane) const {
  return {norms_.at(lane).data() + kNormBytes, gpu::squared_norm_workspace()};
}

float* CudaState::numbers(TaskId task) const {
  return reinterpret_cast<float*>(numbers_.data() + numbers_at_.at(task));
}

void CudaState::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
}

void CudaState::check() const {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

std::int64_t* CudaState::text(TaskId task) const {
  return reinterpret_cast<std::int64_t*>(text_.data() + text_at_.at(task));
}

}  // namespace orrery::cuda
