#include "sim/report/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "models/base/version.h"
#include "models/plan/hash.h"
#include "sim/report/attribution.h"
#include "sim/report/flops.h"
#include "sim/report/remarks.h"
#include "sim/report/stalls.h"
#include "sim/report/steps_overlap.h"
#include "sim/report/uplink_remark.h"

namespace orrery {
namespace {

constexpr double kMiB = 1048576.0;

// A mean over ranks, summed in integers, so that the mean is the same to the bit whether eight equal ranks are one
// class or eight.
struct RankMean {
  __extension__ using Wide = __int128;
  Wide sum = 0;
  void add(std::int64_t amount, std::int64_t ranks) { sum += static_cast<Wide>(amount) * ranks; }
  double over(std::int64_t ranks) const { return static_cast<double>(sum) / static_cast<double>(ranks); }
};

void add_time(Report& r, const Plan& plan, const Attribution& a) {
  std::array<RankMean, kTimeKinds> means;
  for (std::size_t s = 0; s < plan.classes.size(); ++s) {
    if (plan.classes[s].server) continue;  // a parameter server computes on the host
    for (int k = 0; k < kTimeKinds; ++k) means[k].add(a.by_slot[s][k], plan.classes[s].multiplicity);
  }
  for (int k = 0; k < kTimeKinds; ++k) r.time_s[k] = means[k].over(plan.workers()) / kPicosecondsPerSecond;
}

// Splits the step's time between the model that trains and the frozen one beside it.
void add_models(Report& r, SecondModel::Role role, const Plan& plan, const Attribution& a) {
  ModelTime trained{.name = std::string(trained_name(role)), .time_s = r.time_s};
  ModelTime second{.name = std::string(name_of(role))};
  for (int k = 0; k < kTimeKinds; ++k) {
    RankMean mean;
    for (std::size_t s = 0; s < plan.classes.size(); ++s)
      mean.add(a.second_by_slot[s][k], plan.classes[s].multiplicity);
    second.time_s[k] = std::min(mean.over(plan.workers()) / kPicosecondsPerSecond, trained.time_s[k]);
    trained.time_s[k] -= second.time_s[k];
  }
  r.models = {std::move(trained), std::move(second)};
}

// Adds the bytes on the host and on disks that the ranks of the fullest node hold together: a sum of the peaks of
// single ranks, which may come at different moments.
void add_beyond_device(MemoryReport& r, const Spec& spec, const Plan& plan, const std::vector<SlotMemory>& slots) {
  const std::vector<std::uint32_t> slot_of = slots_of_ranks(plan);
  const Cluster& c = spec.cluster;
  std::map<std::int64_t, TierBytes> nodes;
  for (std::int64_t rank = 0; rank < plan.ranks; ++rank) {
    TierBytes& peaks = nodes[plan.seat_of(rank) / std::max(1, c.gpus_per_node)];
    for (std::size_t t = 0; t < kTiers; ++t) peaks[t] += slots[slot_of[rank]].tier_peak[t];
  }
  if (c.host) r.tier_capacity[index_of(MemoryTier::host)] = c.host->dram_bytes;
  for (const MemoryTier tier : kTiersBeyond) {
    const std::size_t t = index_of(tier);
    for (const auto& [node, peaks] : nodes) r.tier_peak[t] = std::max(r.tier_peak[t], peaks[t]);
    if (c.stores[t]) r.tier_capacity[t] = c.stores[t]->bytes;
    if (is_over(r, tier)) r.fits = false;
  }
}

// Returns whether ranks are CPUs, which have neither a CUDA context outside the allocator nor a library workspace.
bool on_cpu(const Spec& spec) { return spec.cluster.gpu.memory_bytes == 0; }
Bytes context_bytes(const Spec& spec) {
  return static_cast<Bytes>(on_cpu(spec) ? 0 : spec.software.memory.context_MiB * kMiB);
}

// Returns the bytes of the GPU's memory; for CPU ranks, bytes of the machine's memory, which the profile states.
Bytes capacity_of(const Spec& spec, const Profile& profile) {
  return on_cpu(spec) ? profile.memory_bytes : spec.cluster.gpu.memory_bytes;
}

Bytes usable_bytes(const Spec& spec, const Costs& costs, const Profile& profile) {
  Bytes outside = 0;
  for (const Bytes b : costs.nccl_bytes) outside = std::max(outside, b);
  return capacity_of(spec, profile) - context_bytes(spec) - outside;
}

// Returns the most bytes of gradients that are copied at one moment for a reduction. Gradients are copied bucket by
// bucket. If each parameter has a bucket of its own, the parameter's complete gradient is copied; if all gradients are
// reduced together, they are contiguous already and nothing is copied.
Bytes largest_copy(double bucket_MiB) {
  if (bucket_MiB >= kOneBucket_MiB) return 0;
  return static_cast<Bytes>((bucket_MiB > 0 ? bucket_MiB : kOneBucket_MiB) * kMiB);
}

MemoryOptions memory_options(const Spec& spec, const Plan& plan, const Costs& costs, const Profile& profile) {
  const Software& software = spec.software;
  // Sharded gradients have a permanent flat buffer; unsharded gradients are copied into a flat buffer for the
  // reduction.
  const std::int64_t copies = plan.shards_gradients ? 0 : software.memory.flat_copies;
  const double buffers = plan.shards_optimizer && copies == 0 ? software.memory.buffers_MiB : 0,
               bucket = spec.strategy.bucket_MiB;
  return {.capacity = std::max<Bytes>(usable_bytes(spec, costs, profile), 1),
          .workspace = static_cast<Bytes>(on_cpu(spec) ? 0 : (software.memory.workspace_MiB + buffers) * kMiB),
          .backward_workspace = static_cast<Bytes>(
              !on_cpu(spec) && software.memory.backward_workspace ? software.memory.workspace_MiB * kMiB : 0),
          .expandable_segments = software.memory.expandable_segments,
          .collectives_hold_tensors = software.memory.collectives_hold_tensors,
          .waits_for_loss = software.memory.waits_for_loss,
          .gathers_lists = software.memory.gathers_lists,
          .moments_at_start = software.memory.moments == MomentTensors::at_start,
          .moments_by_weight = software.memory.moments == MomentTensors::by_weight,
          .gradients_by_weight = software.memory.gradients == GradientTensors::by_weight,
          .flat_copies = copies,
          .flat_copy = largest_copy(bucket),
          .blocking_launches = software.host.blocking_launches,
          .host_part = costs.host_part,
          .filling_part = costs.filling_part};
}

std::vector<RankMemory> ranks_of(const Spec& spec, const Plan& plan, const Costs& costs,
                                 const std::vector<SlotMemory>& slots) {
  std::vector<RankMemory> ranks;
  for (std::size_t s = 0; s < slots.size(); ++s) {
    SlotMemory m = slots[s];
    Bytes device = m.peak_reserved + context_bytes(spec) + costs.nccl_bytes[s];
    if (plan.classes[s].server) {  // a parameter server has no GPU
      m = {.tier_peak = m.tier_peak};
      device = 0;
    }
    ranks.push_back({plan.classes[s].name, plan.classes[s].multiplicity, m, device, describe_task(plan, m.peak_task)});
  }
  return ranks;
}

MemoryReport replayed_memory(const Spec& spec, const Plan& plan, const Costs& costs, const Trace& trace,
                             const Profile& profile) {
  MemoryReport r;
  r.capacity = capacity_of(spec, profile);
  r.usable = usable_bytes(spec, costs, profile);
  MemoryOptions options = memory_options(spec, plan, costs, profile);
  const std::vector<SlotMemory> slots = replay_memory(plan, trace, options);
  for (const RankMemory& rank : ranks_of(spec, plan, costs, slots)) {
    add_rank(r, rank);
    if (rank.memory.out_of_memory || rank.device_peak > r.capacity) r.fits = false;
    r.device_calls = std::max(r.device_calls, rank.memory.device_calls);
  }
  if (can_stall(spec)) {
    options.collectives_hold_tensors = false;
    options.filling_part = options.host_part;  // hosts that wait do not run ahead
    r.stalled = ranks_of(spec, plan, costs, replay_memory(plan, trace, options));
  }
  r.remapping_s = static_cast<double>(r.device_calls) * spec.software.host.segment_us * kMicrosecond;
  add_beyond_device(r, spec, plan, slots);
  return r;
}

using CommunicationKey = std::tuple<Dimension, std::string, std::string, std::string>;

// One row of the report's table of communication, as means over ranks.
struct Traffic {
  RankMean count, bytes, time, exposed;
};

CommunicationKey key_of(const Op& op, const TransferNote& note) {
  if (const auto* c = std::get_if<Collective>(&op.work))
    return {c->group, std::string(name_of(c->kind)), note.link, note.algorithm};
  return {Dimension::pipeline, "send_receive", note.link, note.algorithm};
}

// Returns the bytes that one rank of a class (ranks that do the same) sends in a task of this op. In gathers, scatters,
// pushes and pulls the bytes differ from rank to rank.
Bytes bytes_out(const Plan& plan, const Op& op, const RankClass& slot) {
  if (const auto* t = std::get_if<Transfer>(&op.work)) return t->send ? t->bytes : 0;
  const auto& c = std::get<Collective>(op.work);
  const GroupTable& table = plan.dimensions[static_cast<std::size_t>(c.group)];
  // The group of ranks that communicate is looked up for each class of ranks, since groups may differ between stages.
  const auto& group = table.groups[table.member_of[slot.representative]];
  const auto n = static_cast<std::int64_t>(group.size());
  const bool root = slot.representative == group.front();
  switch (c.kind) {
    case CollectiveKind::gather:
      return root ? 0 : ceil_div(c.bytes, n);
    case CollectiveKind::scatter:
      return root ? ceil_div(c.bytes * (n - 1), n) : 0;
    case CollectiveKind::push:
      // A chain of parameter servers holds copies of the same weights; every server but the last sends the summed
      // gradients on to the next.
      return slot.server ? ceil_div(c.bytes * (c.copies - 1), plan.servers) : c.bytes;
    case CollectiveKind::pull:
      // In a chain of parameter servers, workers get the weights from the last server only.
      return slot.server ? ceil_div(c.bytes * plan.workers(), plan.servers) : 0;
    default:
      return c.group == Dimension::hand_over ? c.sent : bytes_per_rank(c.kind, n, c.bytes);
  }
}

// Adds the table of communication to the report: transfers summed by group, kind of transfer, link and algorithm. A
// send and the matching receive count once, at the sender.
void add_communication(Report& r, const Plan& plan, std::span<const TransferNote> notes, const Trace& trace,
                       const Attribution& a) {
  const Period period = period_of(plan, trace);
  std::map<CommunicationKey, Traffic> rows;
  std::vector<Traffic*> row_of_op(plan.ops.size(), nullptr);
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    if (!std::holds_alternative<Collective>(op.work) && !std::holds_alternative<Transfer>(op.work)) continue;
    row_of_op[i] = &rows[key_of(op, notes[i])];
    row_of_op[i]->exposed.add(a.exposed_by_op[i], 1);
  }
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const std::uint32_t op = plan.tasks[t].op;
    Traffic* row = row_of_op[op];
    const Picoseconds ended = trace.spans[t].ended;
    const bool reported = plan.steps == 1 || (ended > period.begin && ended <= period.end);
    if (row == nullptr || !reported) continue;
    const RankClass& slot = plan.classes[plan.slot_of(t)];
    const std::int64_t ranks = slot.multiplicity;
    row->bytes.add(bytes_out(plan, plan.ops[op], slot), ranks);
    if (slot.server) continue;
    const auto* transfer = std::get_if<Transfer>(&plan.ops[op].work);
    if (transfer != nullptr && !transfer->send) continue;
    row->count.add(1, ranks);
    row->time.add(ended - trace.spans[t].matched, ranks);
  }
  for (const auto& [key, row] : rows) {
    if (row.count.sum == 0) continue;
    const auto& [group, op, link, algorithm] = key;
    r.communication.push_back({std::string(name_of(group)), op, link, algorithm,
                               static_cast<std::int64_t>(std::ceil(row.count.over(plan.workers()))),
                               row.bytes.over(plan.workers()), row.time.over(plan.workers()) / kPicosecondsPerSecond,
                               row.exposed.over(plan.workers()) / kPicosecondsPerSecond});
  }
}

// Adds, for each stage of an asynchronous schedule, how many weight versions it keeps and how stale its gradients are.
void add_weights(Report& r, const Plan& plan) {
  for (const RankClass& s : plan.classes) {
    if (plan.steps > 1) r.weights.push_back({s.name, s.versions, s.staleness});
  }
}

// Returns a sentence that names the largest parts of a time as shares of a step of `step_s` seconds.
std::string limits(const TimeSplit& time_s, double step_s) {
  std::vector<std::pair<double, std::string_view>> parts;
  parts.reserve(kTimeKinds);
  for (int k = 0; k < kTimeKinds; ++k) parts.emplace_back(time_s[k], name_of(static_cast<TimeKind>(k)));
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (std::size_t i = 0; i < 3 && parts[i].first > 0.01 * step_s; ++i) {
    text += fmt::format("{}{} {:.0f} %", i == 0 ? "" : ", ", parts[i].second, 100 * parts[i].first / step_s);
  }
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

}  // namespace

void add_rates(Report& r, const Spec& spec, const Plan& plan) {
  r.bubble_fraction = r.time_s[static_cast<std::size_t>(TimeKind::bubble)] / r.step_time_s;
  r.limit = limits(r.time_s, r.step_time_s);
  for (ModelTime& model : r.models) model.limit = limits(model.time_s, r.step_time_s);
  const double gpus = static_cast<double>(plan.workers());
  r.tokens_per_s = static_cast<double>(spec.strategy.global_batch * spec.sequence) / r.step_time_s;
  r.tokens_per_s_per_gpu = r.tokens_per_s / gpus;
  const auto tflops = [&](double flops) { return flops / r.step_time_s / gpus / 1e12; };
  const auto rates = [&](AttentionPairs pairs, double& model, double& hardware) {
    const double flops = model_flops(spec, pairs);
    model = tflops(flops);
    hardware = tflops(flops + recomputed_flops(plan, spec, pairs));
  };
  rates(AttentionPairs::masked, r.model_tflops_per_gpu, r.hardware_tflops_per_gpu);
  rates(AttentionPairs::full, r.model_tflops_full_attention, r.hardware_tflops_full_attention);
  r.gpu_hours = gpus * r.step_time_s / 3600;
  if (spec.cluster.gpu.tflops.empty()) return;  // a CPU rank has no nominal peak
  const double peak = peak_flops(spec.cluster.gpu, spec.strategy.precision) / 1e12;
  r.mfu = r.model_tflops_per_gpu / peak;
  r.hfu = r.hardware_tflops_per_gpu / peak;
  r.mfu_full_attention = r.model_tflops_full_attention / peak;
}

bool is_over(const MemoryReport& memory, MemoryTier tier) {
  const Bytes capacity = memory.tier_capacity[index_of(tier)];
  return capacity > 0 && memory.tier_peak[index_of(tier)] > capacity;
}

void add_rank(MemoryReport& report, const RankMemory& rank) {
  report.first_step_peak = std::max(report.first_step_peak, rank.memory.first_step_peak);
  report.peak = std::max(report.peak, rank.memory.peak);
  report.peak_reserved = std::max(report.peak_reserved, rank.memory.peak_reserved);
  report.update_reserved = std::max(report.update_reserved, rank.memory.update_reserved);
  report.peak_device = std::max(report.peak_device, rank.device_peak);
  report.ranks.push_back(rank);
}

Report make_report(const Spec& spec, const Plan& plan, const Trace& trace, std::span<const TransferNote> notes,
                   MemoryReport memory) {
  return make_report(spec, plan, trace, notes, std::move(memory), attribute(plan, trace),
                     period_of(plan, trace).length());
}

Report make_report(const Spec& spec, const Plan& plan, const Trace& trace, std::span<const TransferNote> notes,
                   MemoryReport memory, const Attribution& a, Picoseconds length) {
  Report r;
  r.source = trace.source;
  r.plan_hash = plan_hash(plan);
  r.software_version = kVersion;
  r.step_time_s = seconds(length) + memory.remapping_s;
  add_time(r, plan, a);
  r.time_s[static_cast<std::size_t>(TimeKind::other)] += memory.remapping_s;
  if (plan.steps_overlap && plan.steps == 1) overlap_steps(r, plan, trace);
  if (spec.second) add_models(r, spec.second->role, plan, a);
  if (has_second_apart(spec)) {
    overlap_models(r, plan, seconds(trace.step_time - length));
    add_idle_shares(r);
  }
  r.step_time_low_s = r.step_time_s;  // initial values; predict() later sets the interval
  r.step_time_high_s = r.step_time_s;
  add_rates(r, spec, plan);
  r.memory = std::move(memory);
  add_communication(r, plan, notes, trace, a);
  add_weights(r, plan);
  r.simulation = {plan.task_count(), static_cast<std::int64_t>(plan.classes.size()), plan.ranks, 0};
  return r;
}

void add_checkpoint(Report& r, const Spec& spec, const Plan& plan) {
  r.checkpoint = checkpoint_cost(spec, plan, r.step_time_s);
  const Bytes has = spec.cluster.host ? spec.cluster.host->dram_bytes : 0;
  if (has > 0 && r.checkpoint->host_bytes > has)
    r.remarks.push_back(fmt::format("checkpoint: the copy of a node needs {:.4g} GiB of its host's {:.4g} GiB",
                                    static_cast<double>(r.checkpoint->host_bytes) / (1 << 30),
                                    static_cast<double>(has) / (1 << 30)));
}

Report make_report(const Spec& spec, const Plan& plan, const Costs& costs, const Trace& trace, const Profile& profile) {
  const Picoseconds length =
      has_second_apart(spec) ? period_of_models(plan, costs.timing) : period_of(plan, trace).length();
  Report r = make_report(spec, plan, trace, costs.notes, replayed_memory(spec, plan, costs, trace, profile),
                         attribute(plan, trace), length);
  r.profile_hash = profile.hash;
  r.remarks = remarks(spec, plan, profile);
  add_stalls_remark(r, spec);
  r.links = link_uses(plan, costs.timing, length, spec.cluster);
  if (const std::string remark = uplink_remark(costs.busiest); !remark.empty()) {
    const auto& [group, op, link, algorithm] = key_of(plan.ops[costs.busiest.op], {});
    r.remarks.push_back(fmt::format("{}{} {} {}", kNetworkRemark, name_of(group), op, remark));
  }
  if (spec.strategy.checkpoint) add_checkpoint(r, spec, plan);
  const Picoseconds before = period_of(plan, trace, plan.reported - 1).length();
  const Picoseconds more = before - period_of(plan, trace).length();
  if (plan.steps > 1 && more != 0)
    r.remarks.push_back(fmt::format("step time: not steady: the step before took {:.3g} s {}", seconds(std::abs(more)),
                                    more > 0 ? "longer" : "less"));
  return r;
}

std::vector<MemorySample> memory_samples(const Spec& spec, const Plan& plan, const Costs& costs, const Trace& trace,
                                         const Profile& profile) {
  std::vector<MemoryCurve> curves;
  replay_memory(plan, trace, memory_options(spec, plan, costs, profile), &curves);
  for (std::size_t s = 0; s < curves.size(); ++s) {
    if (plan.classes[s].server) curves[s].assign(2, {});  // a parameter server has no GPU
  }
  return samples_of(curves, plan.steps == 1 ? spec.steps : 1, trace.step_time);
}

}  // namespace orrery
