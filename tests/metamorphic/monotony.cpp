// Less to do, or faster parts, take no longer.
#include <fmt/format.h>

#include "models/data.h"
#include "models/schedules.h"
#include "models/sharding.h"
#include "tests/metamorphic/relations.h"

namespace orrery::test {
namespace {

// Whether a GPU is at least as good in every figure, and of a kind whose kernels are priced alike.
bool is_better(const Gpu& a, const Gpu& b) {
  if (a.id == b.id || a.architecture != b.architecture || a.compute_capability != b.compute_capability) return false;
  for (const auto& [precision, peak] : b.tflops) {
    const auto at = a.tflops.find(precision);
    if (at == a.tflops.end() || at->second < peak) return false;
  }
  return a.sms >= b.sms && a.l2_MB >= b.l2_MB && a.memory_bytes >= b.memory_bytes && a.memory_GBps >= b.memory_GBps &&
         a.nvlink_GBps >= b.nvlink_GBps && a.pcie_GBps >= b.pcie_GBps && a.nvlink_reach == b.nvlink_reach;
}

// Costs of other layers move the cut of the pipeline too.
bool is_cut_by_cost(const Spec& spec) {
  return spec.strategy.pipeline > 1 &&
         (spec.strategy.schedule == "dapple" || spec.software.stage_rule.starts_with("by_"));
}

void more_micro_batches(Checks& checks, const Subject& s) {
  const Json more = with(s.spec, "strategy.global_batch", 2 * s.run.spec.strategy.global_batch);
  const Run* twice = checks.simulate(more);
  if (twice == nullptr) return;
  const double before = Checks::step_time(s.run, *twice), after = Checks::step_time(*twice, s.run);
  const std::string text = fmt::format("{:.6g} -> {:.6g} s", before, after);
  if (after < before * (1 + 1e-6)) checks.violated("batch x2", text, s.spec, more);
  checks.went("batch x2 superlinear", s.run, Checks::step_time(*twice) / (2 * Checks::step_time(s.run)) - 1);
  if (after > 2 * before * (1.01 + checks.slack(s.run))) checks.violated("batch x2 superlinear", text, s.spec, more);
  const std::string& schedule = s.run.spec.strategy.schedule;
  if (schedule != "file" && find_schedule(schedule).moves != nullptr) return;  // leaves more with other stages
  const Bytes a = s.run.report.memory.peak, b = twice->report.memory.peak;
  const double less = 1 - static_cast<double>(b) / static_cast<double>(a);
  checks.went("batch x2 memory", s.run, less);
  if (less > .005 + checks.slack(s.run))
    checks.violated("batch x2 memory", fmt::format("{} -> {}", a, b), s.spec, more);
}

void more_layers(Checks& checks, const Subject& s) {
  const Strategy& st = s.run.spec.strategy;
  const std::int64_t per = st.pipeline * std::max<std::int64_t>(st.virtual_stages, 2);
  const Json more = with(s.spec, "model.layers", s.run.spec.model.layers + per);
  const Run* deeper = checks.simulate(more);
  if (deeper == nullptr) return;
  const double before = Checks::step_time(s.run, *deeper), after = Checks::step_time(*deeper, s.run);
  if (after < before * (1 - 1e-3))
    checks.violated("more layers", fmt::format("{:.6g} -> {:.6g} s", before, after), s.spec, more);
  const Bytes a = s.run.report.memory.peak, b = deeper->report.memory.peak;
  if (static_cast<double>(b) < static_cast<double>(a) * .999)
    checks.violated("more layers' memory", fmt::format("{} -> {}", a, b), s.spec, more);
}

// The larger spec is the one that must not be beaten by the smaller.
const Run* smaller_is_not_slower(Checks& checks, std::string_view name, const Subject& s, const Json& larger) {
  const Run* run = checks.simulate(larger);
  if (run != nullptr) checks.not_slower(name, larger, *run, s.spec);
  return run;
}

}  // namespace

void faster_links(Checks& checks, const Subject& s) {
  const Cluster& c = s.run.spec.cluster;
  checks.not_slower("nic x2", s.spec, s.run, with(s.spec, "cluster.nic_Gbps", 2 * c.nic_Gbps));
  if (2 * c.nics <= c.gpus_per_node)
    checks.not_slower("nics x2", s.spec, s.run, with(s.spec, "cluster.nics", 2 * c.nics));
}

void faster_gpu(Checks& checks, const Subject& s) {
  const Gpu& gpu = s.run.spec.cluster.gpu;
  for (const std::string_view id : data_names("gpus")) {
    if (!is_predicted(find_gpu(id)) || !is_better(find_gpu(id), gpu)) continue;
    const std::string name = fmt::format("gpu {} -> {}", gpu.id, id);
    const Run* better = checks.not_slower(name, s.spec, s.run, with(s.spec, "cluster.gpu", id), 0.01);
    if (better != nullptr && s.run.report.memory.fits && !better->report.memory.fits)
      checks.violated("more memory does not fit", name, s.spec);
  }
}

void lower_latency(Checks& checks, const Subject& s) {
  Json half = s.spec;
  for (const Origin& o : s.run.spec.origins) {
    const bool of_host = o.key.starts_with("software.") && o.key.ends_with("_us") && o.key != "software.segment_us";
    if (of_host) half = with(half, o.key, std::stod(o.value) / 2);
  }
  checks.not_slower("half host time", s.spec, s.run, half);
}

void more_work(Checks& checks, const Subject& s) {
  const Spec& spec = s.run.spec;
  more_micro_batches(checks, s);
  if (s.spec["model"].is_object() && spec.strategy.stage_layers.empty()) {
    more_layers(checks, s);
    if (is_cut_by_cost(spec)) return;
    if (!spec.model.moe)
      smaller_is_not_slower(checks, "half feed forward", s,
                            with(s.spec, "model.feed_forward", 2 * spec.model.feed_forward));
    smaller_is_not_slower(checks, "half vocabulary", s, with(s.spec, "model.vocab", 2 * spec.model.vocab));
  }
  const Json longer = with(s.spec, "sequence", 2 * spec.sequence);
  const Run* run = smaller_is_not_slower(checks, "half sequence", s, longer);
  if (run != nullptr &&
      static_cast<double>(run->report.memory.peak) < static_cast<double>(s.run.report.memory.peak) * .99)
    checks.violated("sequence x2 memory", "", s.spec, longer);
}

void weak_scaling(Checks& checks, const Subject& s) {
  const Spec& spec = s.run.spec;
  const ShardingRow& row = row_of(spec.strategy.sharding);
  const bool lags = !spec.cluster.stragglers.empty() || spec.cluster.straggler_share > 0;
  if (lags || is_offloaded(spec.strategy) || row.hybrid || row.servers || row.master) return;
  if (spec.strategy.rank_order.starts_with("dp")) return;  // more data ranks put the others on other nodes
  Json more = with(s.spec, "strategy.data", 2 * spec.strategy.data);
  more = with(more, "gpus", 2 * spec.gpus);
  more = with(more, "cluster.nodes", 2 * spec.cluster.nodes);
  more = with(more, "strategy.global_batch", 2 * spec.strategy.global_batch);
  const Run* wide = checks.simulate(more);
  if (wide == nullptr || wide->spec.strategy.sharding != spec.strategy.sharding) return;  // over one rank: none
  // Twice the ranks may share the update.
  const auto update = [](const Run& run) { return run.report.time_s[static_cast<std::size_t>(TimeKind::optimizer)]; };
  const double shared = std::max(0.0, update(s.run) - update(*wide));
  const double before = Checks::step_time(s.run, *wide) - shared, after = Checks::step_time(*wide, s.run);
  checks.went("weak scaling", s.run, 1 - Checks::step_time(*wide) / (Checks::step_time(s.run) - shared));
  if (after < before * .95)
    checks.violated("weak scaling", fmt::format("{:.6g} -> {:.6g} s", before, after), s.spec, more);
}

}  // namespace orrery::test
