#include "sim/generate/pass_limits.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/print/text.h"

namespace orrery {
namespace {

// Returns the bytes that an op reads of what earlier passes have kept for each sequence: keys and values, keys of an
// index, the states of a recurrence.
double kept_reads(const Op& op) {
  if (const auto* a = std::get_if<FlashAttention>(&op.work)) return cache_bytes(*a);
  if (const auto* i = std::get_if<IndexScores>(&op.work))
    return static_cast<double>(i->batch * i->cached * i->cached_row);
  const auto* s = std::get_if<Scan>(&op.work);
  return s != nullptr && s->resumes ? static_cast<double>(s->batch * s->heads * s->key_dim * s->value_dim * 4) : 0;
}

// Returns the share that a task of the compute lane counts to.
double PassLimits::*share_of(const Op& op, const Gpu& gpu, Bytes width) {
  if (const auto* a = std::get_if<FlashAttention>(&op.work))
    return a->cached > 0 ? &PassLimits::cache : &PassLimits::products;
  if (kept_reads(op) > 0) return &PassLimits::cache;
  const bool product = std::holds_alternative<Gemm>(op.work) || std::holds_alternative<GroupedGemm>(op.work);
  if (!product) return &PassLimits::kernels;
  if (gpu.tflops.empty() || gpu.memory_GBps <= 0) return &PassLimits::products;  // a CPU, whose peaks are not known
  const Cost cost = cost_of(op.work, is_eight_bit(op.precision) ? 1 : width);
  const double moved = cost.bytes / (gpu.memory_GBps * 1e9), computed = cost.flops / peak_flops(gpu, op.precision);
  return moved > computed ? &PassLimits::weights : &PassLimits::products;
}

// Sums the times of the compute lane's tasks by what they count to, over all ranks.
PassLimits busy_times(const Spec& spec, const Prediction& p) {
  PassLimits sums;
  const Plan& plan = p.plan;
  for (std::uint32_t s = 0; s < plan.classes.size(); ++s) {
    for (TaskId t = plan.classes[s].begin; t < plan.classes[s].end; ++t) {
      const Op& op = plan.op_of(t);
      if (op.lane != LaneKind::compute) continue;
      sums.*share_of(op, spec.cluster.gpu, plan.element_bytes) +=
          seconds(p.costs.timing.of(s, plan.tasks[t].op).duration) * static_cast<double>(plan.classes[s].multiplicity);
    }
  }
  return sums;
}

// Returns the bytes of the weights of a product, of which `matrices` lie one above the other.
double weight_bytes_of(const Op& op, const WeightFormat& format, std::int64_t out, std::int64_t in,
                       std::int64_t matrices, Bytes width) {
  if (format.narrow()) return static_cast<double>(weight_bytes(format, out, in, matrices));
  return static_cast<double>(out * in * (is_eight_bit(op.precision) ? 1 : width));
}

void add_reads(const Op& op, Bytes width, PassReads& reads) {
  reads.cache += kept_reads(op);
  if (const auto* g = std::get_if<Gemm>(&op.work); g != nullptr && g->heads == 0)
    reads.weights += weight_bytes_of(op, g->weights, g->n * g->batch, g->k, g->batch, width);
  if (const auto* g = std::get_if<GroupedGemm>(&op.work))
    reads.weights += weight_bytes_of(op, g->weights, g->groups * g->out, g->in, g->groups, width);
}

}  // namespace

PassLimits pass_limits(const Spec& spec, const Prediction& p, double period_s, double host_s, double drafts_s) {
  const auto time = [&](TimeKind k) { return p.report.time_s[static_cast<std::size_t>(k)] / period_s; };
  PassLimits limits = busy_times(spec, p);
  const double busy = limits.weights + limits.cache + limits.products + limits.kernels;
  const double scale = busy > 0 ? time(TimeKind::compute) / busy : 0;
  for (double PassLimits::*share :
       {&PassLimits::weights, &PassLimits::cache, &PassLimits::products, &PassLimits::kernels})
    limits.*share *= scale;
  for (const TimeKind k : {TimeKind::exposed_tensor, TimeKind::exposed_context, TimeKind::exposed_expert,
                           TimeKind::exposed_pipeline, TimeKind::exposed_data})
    limits.links += time(k);
  limits.launch = time(TimeKind::launch);
  limits.host = host_s / period_s;
  limits.drafts = drafts_s / period_s;
  const double left = std::max(0.0, 1 - time(TimeKind::compute) - limits.host - limits.drafts),
               waits = limits.links + limits.launch;
  if (waits > left) {
    limits.links *= left / waits;
    limits.launch *= left / waits;
  }
  limits.idle = left - limits.links - limits.launch;
  return limits;
}

std::string text_of(const PassLimits& limits) {
  constexpr double kWorthNaming = 0.05;
  std::vector<std::pair<double, const char*>> shares;
  for_limits(limits, [&](const char* name, double share) {
    if (share >= kWorthNaming) shares.emplace_back(share, name);
  });
  std::stable_sort(shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [share, name] : shares)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, percent_text(share));
  return text;
}

PassReads pass_reads(const Plan& plan) {
  PassReads most;
  for (const RankClass& slot : plan.classes) {
    PassReads reads;
    for (TaskId t = slot.begin; t < slot.end; ++t) add_reads(plan.op_of(t), plan.element_bytes, reads);
    if (reads.sum() > most.sum()) most = reads;
  }
  return most;
}

}  // namespace orrery
