#include "viz/timeline/event_kind.h"

#include <string>
#include <utility>

#include "sim/summary/kernel_class.h"

namespace orrery {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Returns whether the kind of an event ("gemm/output bf16", "norm/rms/forward") names a matrix product or norm of the
// forward pass. In the backward phase such an event is recomputation.
bool forward_again(std::string_view kind) { return contains(kind, "/output") || contains(kind, "/forward"); }

// Returns the kind of a GPU kernel by its name, for kernels not known to be of the forward or backward pass.
Kind kernel_kind(std::string_view name) {
  switch (class_of_kernel(name)) {
    case KernelClass::gemm:
    case KernelClass::convolution:
      return Kind::product;
    case KernelClass::attention:
      return Kind::attention;
    case KernelClass::norm:
    case KernelClass::elementwise:
    case KernelClass::reduction:
    case KernelClass::indexing:
    case KernelClass::triton:
      return Kind::pointwise;
    case KernelClass::optimizer:
      return Kind::optimizer;
    case KernelClass::copy:
      return Kind::copy;
    case KernelClass::collective:
      return Kind::communication;
    default:
      return Kind::other;
  }
}

// Returns the kind of an op that a program times by itself, by the names of Megatron's timers
// (megatron/core/pipeline_parallel/schedules.py and finalize_model_grads.py of NVIDIA/Megatron-LM): gradients of norms
// are summed over tensor ranks, those of tied embeddings over the first and the last stage.
Kind timer_kind(std::string_view name) {
  static constexpr std::pair<std::string_view, Kind> rows[] = {{"forward-compute", Kind::forward},
                                                               {"backward-compute", Kind::backward},
                                                               {"layernorm-grads", Kind::tensor},
                                                               {"embedding-grads", Kind::pipeline},
                                                               {"grads-reduce-scatter", Kind::data},
                                                               {"grads-all-reduce", Kind::data},
                                                               {"params-all-gather", Kind::data},
                                                               {"optimizer", Kind::optimizer},
                                                               {"all-grads-sync", Kind::data},
                                                               {"non-tensor-parallel-grads", Kind::tensor},
                                                               {"conditional-embedder-grads", Kind::pipeline}};
  for (const auto& [begin, kind] : rows) {
    if (name.starts_with(begin)) return kind;
  }
  const bool passes = name.starts_with("forward-") || name.starts_with("backward-");
  return passes && (contains(name, "-send") || contains(name, "-recv") || contains(name, "-comm")) ? Kind::pipeline
                                                                                                   : Kind::other;
}

Kind compute_kind(std::string_view phase, std::string_view kind) {
  if (phase == "forward") return Kind::forward;
  if (phase == "step") return Kind::optimizer;
  return phase == "backward" && forward_again(kind) ? Kind::recompute : Kind::backward;
}

// Returns whether an event's category is host work. A program's annotations (record_function) count as host work too,
// though Kineto also writes them on the streams of the device. PyTorch 1.12 and older write "Operator" and "Runtime".
bool on_host(std::string_view category) {
  return category.ends_with("_runtime") || category.ends_with("_driver") || category == "cpu_op" ||
         category == "Operator" || category == "Runtime" || category == "python_function" ||
         category == "user_annotation" || category == "gpu_user_annotation" || category == "cpu_instant_event" ||
         category == "Trace" || category == "overhead" || category == "fwdbwd";
}

}  // namespace

Kind group_kind(std::string_view description) {
  struct NamePart {
    std::string_view part;
    Kind kind;
  };
  // Megatron's names are those of its variables: "TENSOR_MODEL_PARALLEL_GROUP", "EXPERT_DATA_PARALLEL_GROUP".
  std::string name(description);
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c == '-' ? '_' : c;
  static constexpr NamePart rows[] = {{"expert_data", Kind::data},
                                      {"expert_replicate", Kind::data},
                                      {"expert_tensor", Kind::expert},
                                      {"ulysses", Kind::context},
                                      {"vocabulary", Kind::pipeline},
                                      {"world", Kind::data},
                                      {"tensor", Kind::tensor},
                                      {"pipeline", Kind::pipeline},
                                      {"expert", Kind::expert},
                                      {"context", Kind::context},
                                      {"data", Kind::data},
                                      {"replicate", Kind::data},
                                      {"embedding", Kind::pipeline},
                                      {"model", Kind::data},
                                      {"kv", Kind::tensor},
                                      {"fsdp", Kind::data},
                                      {"dp", Kind::data},
                                      {"tp", Kind::tensor},
                                      {"pp", Kind::pipeline},
                                      {"cp", Kind::context},
                                      {"ep", Kind::expert}};
  for (const NamePart& row : rows) {
    if (contains(name, row.part)) return row.kind;
  }
  return Kind::communication;
}

int group_coordinate(std::string_view description) {
  static constexpr std::pair<std::string_view, int> rows[] = {{"data", 0},     {"dp", 0}, {"tensor", 1},  {"tp", 1},
                                                              {"pipeline", 2}, {"pp", 2}, {"context", 3}, {"cp", 3},
                                                              {"expert", 4},   {"ep", 4}};
  if (description.substr(0, 5) == "mesh_") description.remove_prefix(5);
  for (const auto& [name, coordinate] : rows) {
    if (name == description) return coordinate;
  }
  return -1;
}

Kind kind_of_event(const EventWords& e) {
  if (e.category == "wait" || e.category == "cuda_sync") return Kind::wait;
  if (on_host(e.category)) return Kind::host;
  if (e.category == "gpu_memcpy" || e.category == "gpu_memset" || e.category == "Memcpy" || e.category == "Memset")
    return Kind::copy;
  // Sends and receives without a group may be those of a pipeline as well as an all-to-all.
  if (e.name.substr(0, 4) == "nccl") return e.group.empty() ? Kind::communication : group_kind(e.group);
  if (!e.phase.empty()) return compute_kind(e.phase, e.kind);
  return e.category == "kernel" || e.category == "Kernel" ? kernel_kind(e.name) : timer_kind(e.name);
}

}  // namespace orrery
