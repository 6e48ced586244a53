#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/cost/profile.h"
#include "models/plan/plan.h"
#include "models/spec/spec.h"
#include "models/trace/trace.h"
#include "sim/cost/costs.h"
#include "sim/memory/replay.h"

namespace orrery {

// The ways in which a rank's compute lane (stream) spends a step: busy with compute, recomputation or the optimizer, or
// idle for the reason found by walking back from the task that ended the gap (attribution.h). The order is that of
// time_s.
enum class TimeKind : std::uint8_t {
  compute,
  recompute,
  exposed_tensor,
  exposed_context,
  exposed_expert,
  exposed_pipeline,
  exposed_data,
  offload,
  optimizer,
  bubble,
  imbalance,
  launch,
  other
};
inline constexpr int kTimeKinds = 13;
std::string_view name_of(TimeKind k);
using TimeSplit = std::array<double, kTimeKinds>;  // for each TimeKind, the seconds of a step

// Memory of a class of ranks.
struct RankMemory {
  std::string name;  // name of the class: "stage 0"
  std::int64_t ranks = 0;
  SlotMemory memory;
  // peak bytes of the device: memory that the allocator reserves, CUDA context and NCCL's buffers
  Bytes device_peak = 0;
  std::string at;  // the op at the peak: "B micro-batch 0 layer 79, gradient of mlp up"
};

// Peak memory over all ranks and steps.
struct MemoryReport {
  Bytes capacity = 0, usable = 0;
  bool fits = true;
  Bytes first_step_peak = 0, peak = 0, peak_reserved = 0, update_reserved = 0, peak_device = 0;
  // For each memory tier beyond the device: the greatest number of bytes that the ranks of one node allocate together,
  // and the bytes that a node has (0: not known).
  TierBytes tier_peak{}, tier_capacity{};

  // Seconds of a step in which the allocator gives cached segments back and takes them again (software.segment_us), on
  // the rank that does so most; and the number of cudaMalloc and cudaFree calls in a step.
  double remapping_s = 0;
  std::int64_t device_calls = 0;
  std::vector<RankMemory> ranks;
};
// Whether the ranks of some node allocate more in a tier beyond the device than the node has.
bool is_over(const MemoryReport& memory, MemoryTier tier);
// Adds a class of ranks, and raises the peaks of the report to the peaks of the class.
void add_rank(MemoryReport& report, const RankMemory& rank);

struct CommunicationRow {
  std::string group, op, link, algorithm;
  std::int64_t count = 0;    // number of transfers per rank and step, averaged over ranks
  double bytes_per_gpu = 0;  // bytes that one GPU sends per step
  double time_s = 0;         // time in which the transfer's lane (stream) is busy
  double exposed_s = 0;      // time in which compute waits for the transfer
};

// Weights of a class of ranks under an asynchronous schedule. versions: number of versions of the weights that are
// kept; staleness: largest number of updates between the weights that a gradient was computed with and the weights that
// it changes.
struct WeightRow {
  std::string name;
  std::int64_t versions = 1, staleness = 0;
};

// The figures of a step, from a plan and a trace of it, simulated or measured. Schema orrery.report/2.
struct Report {
  std::string source = "simulated";
  std::string plan_hash, software_version, profile_hash;
  double step_time_s = 0, step_time_low_s = 0, step_time_high_s = 0;
  double tokens_per_s = 0, tokens_per_s_per_gpu = 0;
  double model_tflops_per_gpu = 0, hardware_tflops_per_gpu = 0;
  // MFU and HFU, counting only the pairs of attention that the mask needs; 0: no peak FLOP/s is known (a CPU).
  double mfu = 0, hfu = 0;
  // The same figures over all s x s pairs of attention, as PaLM, Megatron and most papers count.
  double mfu_full_attention = 0, model_tflops_full_attention = 0, hardware_tflops_full_attention = 0;
  double bubble_fraction = 0;
  TimeSplit time_s{};
  MemoryReport memory;
  std::vector<CommunicationRow> communication;
  std::vector<WeightRow> weights;  // weights of each class; empty: all gradients are computed with the newest weights
  double gpu_hours = 0;
  // Seconds that a step takes longer if it has to undo (roll back) the update before it; 0 without
  // software.post_update_validation.
  double roll_back_s = 0;
  struct {
    std::uint64_t tasks = 0;
    std::int64_t ranks_simulated = 0, ranks = 0;
    double wall_s = 0;
  } simulation;
  std::vector<double> losses;        // for each step of an executed run, the loss, mean over the batch
  std::vector<std::string> remarks;  // remarks on inputs that replace those of the spec: "attention: ..."

  // The largest parts of the step, for people: "compute 61 %, exposed tensor all-reduce 21 %, bubble 9 %".
  std::string limit;
};

// The part of a report that simulated and measured steps share: times, rates and attribution from the trace, memory as
// given. notes: by op of the plan.
Report make_report(const Spec& spec, const Plan& plan, const Trace& trace, std::span<const TransferNote> notes,
                   MemoryReport memory);

// The report of a simulated step: its memory is found by replaying the allocations of the trace.
Report make_report(const Spec& spec, const Plan& plan, const Costs& costs, const Trace& trace, const Profile& profile);

// Samples of the memory of every class of ranks over as many steps as the spec has, from the first step on, in which
// some buffers are allocated for good; over one steady step where the spec has one step. The report gives the peak of
// these samples.
std::vector<MemorySample> memory_samples(const Spec& spec, const Plan& plan, const Costs& costs, const Trace& trace,
                                         const Profile& profile);

// Fills in the figures that follow from a report's step time and split of time: rates, shares, and what limits the
// step.
void add_rates(Report& report, const Spec& spec, const Plan& plan);

std::string to_json(const Report& report);  // orrery.report/2, two-space indent, a final newline

}  // namespace orrery
