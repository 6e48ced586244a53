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
#include "sim/report/checkpoint.h"
#include "sim/report/link_use.h"

namespace orrery {

struct Attribution;

// The ways in which a rank's compute lane (stream) spends a step: busy with compute, recomputation or the optimizer, or
// idle for a reason (attribution.h). Report::time_s has one value for each, in this order.
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
using TimeSplit = std::array<double, kTimeKinds>;  // seconds of a step, one value for each TimeKind

// Memory of a class of ranks (ranks that run the same tasks).
struct RankMemory {
  std::string name;  // name of the class: "stage 0"
  std::int64_t ranks = 0;
  SlotMemory memory;
  // peak bytes of device memory: what the allocator reserves, the CUDA context and NCCL's buffers
  Bytes device_peak = 0;
  std::string at;  // the op at the peak: "B micro-batch 0 layer 79, gradient of mlp up"
};

// Peak memory over all ranks and steps.
struct MemoryReport {
  Bytes capacity = 0, usable = 0;
  bool fits = true;
  Bytes first_step_peak = 0, peak = 0, peak_reserved = 0, update_reserved = 0, peak_device = 0;
  // For each memory tier beyond the device (host, disks): the most bytes that the ranks of one node allocate together,
  // and the bytes that a node has (0: not known).
  TierBytes tier_peak{}, tier_capacity{};

  // remapping_s: seconds of a step in which the caching allocator gives segments back and takes them again
  // (software.segment_us), on the rank that spends most time on that; device_calls: number of cudaMalloc and cudaFree
  // calls in a step.
  double remapping_s = 0;
  std::int64_t device_calls = 0;
  std::vector<RankMemory> ranks;
  std::vector<RankMemory> stalled;  // ranks in the second state of the stack's steps (stalls.h); empty: it has none
};
// Returns whether the ranks of some node allocate more in this memory tier (host, disks) than the node has.
bool is_over(const MemoryReport& memory, MemoryTier tier);
// Adds the memory of a class of ranks (ranks that do the same) to the report, and raises the report's peaks to those of
// the class where these are higher.
void add_rank(MemoryReport& report, const RankMemory& rank);

struct CommunicationRow {
  std::string group, op, link, algorithm;
  // count: number of these transfers for one rank in one step, a mean over ranks
  std::int64_t count = 0;
  double bytes_per_gpu = 0;  // bytes that one GPU sends in these transfers per step
  double time_s = 0;         // time in which the lane (stream) is busy with these transfers
  double exposed_s = 0;      // time in which compute waits for these transfers
};

// The versions of the weights that a class of ranks (ranks that do the same) keeps under an asynchronous schedule.
// staleness: the largest number of updates between the weights that a gradient was computed with and the weights that
// it changes.
struct WeightRow {
  std::string name;
  std::int64_t versions = 1, staleness = 0;
};

// The part of a step in which ranks compute one of two models, or wait to do so, a mean over ranks: of the model that
// trains and of the frozen one beside it (SecondModel). The parts of both models sum to the step's time_s.
struct ModelTime {
  std::string name;  // "student", "teacher"; "policy", "reference"
  TimeSplit time_s{};
  std::string limit;  // the largest parts of the model's time, as shares of the step, in the words of Report::limit
  // If the second model has GPUs of its own: the number of GPUs of this model, and the share of the step in which these
  // compute nothing; else 0.
  std::int64_t gpus = 0;
  double idle_share = 0;
};
// Returns what the model that trains is called beside a second one: "student", "policy".
std::string_view trained_name(SecondModel::Role role);

// The time of a step that half of all clusters, and 95 of 100, stay below, if their GPUs and kernels differ as
// cluster.variation says (step_quantiles.h); or half of all jobs, whose connections hashes send over other uplinks in
// each (hash_quantiles.h).
struct StepQuantiles {
  Seconds p50 = 0, p95 = 0;
};

// The figures of one step, simulated or measured, computed from a plan and a trace. The JSON schema is orrery.report/2.
struct Report {
  std::string source = "simulated";
  std::string plan_hash, software_version, profile_hash;
  double step_time_s = 0, step_time_low_s = 0, step_time_high_s = 0;
  double tokens_per_s = 0, tokens_per_s_per_gpu = 0;
  double model_tflops_per_gpu = 0, hardware_tflops_per_gpu = 0;
  // MFU and HFU as fractions, counting only the (query, key) pairs of attention that the mask allows; 0: no peak FLOP/s
  // is known (a CPU).
  double mfu = 0, hfu = 0;
  // MFU and TFLOP/s per GPU counting all s x s (query, key) pairs of attention, as PaLM, Megatron and most papers do.
  double mfu_full_attention = 0, model_tflops_full_attention = 0, hardware_tflops_full_attention = 0;
  double bubble_fraction = 0;
  TimeSplit time_s{};
  std::vector<ModelTime> models;  // the two models of a step that has a frozen one beside the model that trains
  MemoryReport memory;
  std::vector<CommunicationRow> communication;
  std::vector<LinkUseRow> links;  // the fullest link of each kind and level; empty in reports of measured steps
  // The weight versions of each class of ranks; empty: all gradients are computed with the newest weights.
  std::vector<WeightRow> weights;
  double gpu_hours = 0;
  // Additional seconds of a step that has to undo (roll back) the update before it; 0 without
  // software.post_update_validation.
  double roll_back_s = 0;
  struct {
    std::uint64_t tasks = 0;
    std::int64_t ranks_simulated = 0, ranks = 0;
    double wall_s = 0;
  } simulation;
  std::optional<StepQuantiles> variation;    // set if the spec says how GPUs and kernels differ
  std::optional<StepQuantiles> hashes;       // set if hashes choose uplinks and no seed says which
  std::optional<CheckpointCost> checkpoint;  // set if the strategy writes checkpoints
  std::vector<double> losses;                // loss of each step of an executed run, mean over the batch
  std::vector<std::string> remarks;          // remarks on replaced inputs of the spec (remarks.h)

  // A text on what limits the step: the largest parts of its time, "compute 61 %, exposed tensor 21 %, bubble 9 %".
  std::string limit;
};

// Makes the part of a report that is the same for simulated and measured steps: times, rates and attribution from the
// trace; `memory` is taken as it is. notes: for each op of the plan, the link and algorithm of its transfers.
Report make_report(const Spec& spec, const Plan& plan, const Trace& trace, std::span<const TransferNote> notes,
                   MemoryReport memory);
// The same of a step whose length, and how each rank spends it (`time`), are known apart from its trace: those of a
// step in a run of several, of which the trace holds this one alone.
Report make_report(const Spec& spec, const Plan& plan, const Trace& trace, std::span<const TransferNote> notes,
                   MemoryReport memory, const Attribution& time, Picoseconds length);

// Makes the report of a simulated step. The memory figures come from replaying the allocations of the trace.
Report make_report(const Spec& spec, const Plan& plan, const Costs& costs, const Trace& trace, const Profile& profile);

// Returns the memory over time of every class of ranks (ranks that do the same), for as many steps as the spec has,
// beginning with the first step, in which some buffers are allocated for good. If the spec has one step, the samples
// cover one steady step instead, as it is after the first ones. The peak in the report is the peak of these samples.
std::vector<MemorySample> memory_samples(const Spec& spec, const Plan& plan, const Costs& costs, const Trace& trace,
                                         const Profile& profile);

// Fills in the figures that follow from a report's step time and time_s: rates, shares, and what limits the step.
void add_rates(Report& report, const Spec& spec, const Plan& plan);
// Sets the cost of the checkpoints of a report whose step time is set, with a remark where hosts have no room for them.
void add_checkpoint(Report& report, const Spec& spec, const Plan& plan);

// Returns JSON of schema orrery.report/2, indented by two spaces, with a final newline
std::string to_json(const Report& report);

}  // namespace orrery
