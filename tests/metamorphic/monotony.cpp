// Less to do, or faster parts, take no longer.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "models/base/data.h"
#include "models/partition/layers_of_stages.h"
#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"
#include "tests/metamorphic/relations.h"

namespace orrery::test {
namespace {

// The most that rounding of the shares of links moves a step.
constexpr double kLinkUnit = 1e-5;

// Whether GPU a is at least as good as b in every figure, and of a kind whose kernels are priced alike.
bool is_better(const Gpu& a, const Gpu& b) {
  if (a.id == b.id || a.architecture != b.architecture || a.compute_capability != b.compute_capability) return false;
  for (const auto& [precision, peak] : b.tflops) {
    const auto at = a.tflops.find(precision);
    if (at == a.tflops.end() || at->second < peak) return false;
  }
  return a.sms >= b.sms && a.l2_MB >= b.l2_MB && a.memory_bytes >= b.memory_bytes && a.memory_GBps >= b.memory_GBps &&
         a.nvlink_GBps >= b.nvlink_GBps && a.pcie_GBps >= b.pcie_GBps && a.nvlink_reach == b.nvlink_reach;
}

// Whether two runs give each pipeline stage the same layers; where layers are assigned by cost, they may not.
bool are_cut_alike(const Run& a, const Run& b) { return stage_layers(a.spec) == stage_layers(b.spec); }

// The memory of searched orders is not compared: the fastest order that fits the schedule's room wins, whatever it
// needs.
void more_micro_batches(Checks& checks, const Subject& s) {
  if (s.run.spec.documents) return;  // other samples have other documents
  const Json more = with(s.spec, "strategy.global_batch", 2 * s.run.spec.strategy.global_batch);
  const Run* twice = checks.simulate(more);
  if (twice == nullptr) return;
  const double before = s.run.report.step_time_s, after = twice->report.step_time_s;
  const std::string text = fmt::format("{:.6g} -> {:.6g} s", before, after);
  if (remaps(s.run) || remaps(*twice)) return;
  // A delayed update on the host bounds a step that computes less.
  const bool bound = s.run.spec.strategy.offload.delayed_update;
  if (after < before * (1 + (bound ? -kTolerance : 1e-6))) checks.violated("batch x2", text, s.spec, more);
  // Evicted activations meet the other transfers in a different pattern every few micro-batches, and eviction begins
  // only once the pipeline is full.
  const std::string& schedule = s.run.spec.strategy.schedule;
  if (schedule != "file" && find_schedule(schedule).moves != nullptr) return;
  // Offloaded activations that are still being written when a short step ends hold up nothing.
  if (s.run.spec.strategy.offload.activations != MemoryTier::device) return;
  // A host that waits for its device loses the lead with which it began the step.
  const auto launch = [](const Run& run) { return run.report.time_s[static_cast<std::size_t>(TimeKind::launch)]; };
  const double allowed = 2 * (before + unsteady_s(s.run)) + unsteady_s(*twice) +
                         std::max(0.0, launch(*twice) - 2 * launch(s.run)) + overlapping_meetings_s(s.run, *twice);
  checks.went("batch x2 superlinear", s.run, after / allowed - 1);
  // The order of two copies of a model is found with backward passes of twice a forward's time. With more micro-batches
  // it begins the next forwards earlier, in gaps that are shorter than forwards where the host makes these the longer.
  const bool eager = model_copies(schedule) > 1 && waits(s.run);
  if (after > allowed * (1.01 + (eager ? kWaitingTolerance : checks.slack(s.run))))
    checks.violated("batch x2 superlinear", text, s.spec, more);
  const Bytes a = s.run.report.memory.peak, b = twice->report.memory.peak;
  if (!is_searched(s.run.spec.strategy) &&
      static_cast<double>(b + unsplit_bytes(s.run)) < static_cast<double>(a) * .995)
    checks.violated("batch x2 memory", fmt::format("{} -> {}", a, b), s.spec, more);
}

void more_layers(Checks& checks, const Subject& s) {
  const Strategy& st = s.run.spec.strategy;
  const std::int64_t per = st.pipeline * std::max<std::int64_t>(st.virtual_stages, 2);
  const Json more = with(s.spec, "model.layers", s.run.spec.model.layers + per);
  const Run* deeper = checks.simulate(more);
  if (deeper == nullptr) return;
  const double before = s.run.report.step_time_s, after = deeper->report.step_time_s;
  if (!remaps(s.run) && !remaps(*deeper) && after < before * (1 - 1e-3 - checks.slack(s.run)))
    checks.violated("more layers", fmt::format("{:.6g} -> {:.6g} s", before, after), s.spec, more);
  const Bytes a = s.run.report.memory.peak, b = deeper->report.memory.peak;
  if (!is_searched(st) && static_cast<double>(b) < static_cast<double>(a) * .999)
    checks.violated("more layers' memory", fmt::format("{} -> {}", a, b), s.spec, more);
}

// Seconds by which transfers take longer in one run than in another in which uplinks slow other transfers: what is held
// up there leaves the NICs to the rest.
double yielded_s(const Run& fast, const Run& slow) {
  double longer = 0, shorter = 0;
  for (const CommunicationRow& a : fast.report.communication) {
    for (const CommunicationRow& b : slow.report.communication) {
      const bool same = a.group == b.group && a.op == b.op && a.algorithm == b.algorithm && a.count == b.count;
      if (same) (a.time_s > b.time_s ? longer : shorter) += std::abs(a.time_s - b.time_s);
    }
  }
  return std::min(longer, shorter);
}

// A network without switches, sites and faults is the fastest. Shares of a link are counted in 1/2^20 of it.
void no_switches(Checks& checks, const Subject& s) {
  if (!s.run.spec.cluster.network) return;
  Json plain = s.spec;
  plain["cluster"].erase("network");
  const Run* fast = checks.simulate(plain);
  if (fast == nullptr || remaps(s.run) || remaps(*fast)) return;
  const double before = s.run.report.step_time_s, after = fast->report.step_time_s;
  const double met = overlapping_meetings_s(s.run, *fast) + yielded_s(*fast, s.run);
  if (after > before * (1 + kLinkUnit + checks.slack(s.run)) + met)
    checks.violated("no switches", fmt::format("{:.6g} -> {:.6g} s", before, after), s.spec, plain);
}

// Kernels that differ make no step shorter than kernels that are alike, and the 95th percentile is above the 50th.
void variation(Checks& checks, const Subject& s) {
  const Report& r = s.run.report;
  if (s.run.spec.cluster.variation && s.run.spec.cluster.variation->kernels > 0) {
    const Json alike = with(s.spec, "cluster.variation.kernels", 0);
    const Run* run = checks.simulate(alike);
    const double allowed = r.step_time_s * (1 + kLinkUnit + checks.slack(s.run));
    if (run != nullptr && !remaps(*run) && !remaps(s.run) &&
        run->report.step_time_s > allowed + overlapping_meetings_s(s.run, *run))
      checks.violated("kernels alike", fmt::format("{:.6g} -> {:.6g} s", r.step_time_s, run->report.step_time_s),
                      s.spec, alike);
  }
  if (!r.variation) return;
  if (!(r.variation->p50 <= r.variation->p95) || !(r.variation->p50 > 0.5 * r.step_time_s))
    checks.violated("variation",
                    fmt::format("{:.6g} s: {:.6g}, {:.6g}", r.step_time_s, r.variation->p50, r.variation->p95), s.spec,
                    s.spec);
}

// Few hashes that choose uplinks are luckier than the mean by much, and the 95th percentile is above the 50th.
void hashes(Checks& checks, const Subject& s) {
  const Report& r = s.run.report;
  if (!r.hashes) return;
  if (!(r.hashes->p50 <= r.hashes->p95) || !(r.hashes->p50 > 0.5 * r.step_time_s))
    checks.violated("hashes", fmt::format("{:.6g} s: {:.6g}, {:.6g}", r.step_time_s, r.hashes->p50, r.hashes->p95),
                    s.spec, s.spec);
}

// The NCCL algorithms that a run uses to reduce and gather.
std::set<std::string> algorithms(const Run& run) {
  std::set<std::string> all;
  for (const CommunicationRow& row : run.report.communication) all.insert(row.group + row.op + row.algorithm);
  return all;
}

// Seconds of one bucket of gradients, for each time that a step reduces them, and of one of gathered parameters; 0
// where there is one bucket: with fewer gradients a bucket is full at another layer, and the last bucket, which nothing
// hides, may be larger.
double buckets_s(const Run& run) {
  const Strategy& strategy = run.spec.strategy;
  const double reductions = strategy.no_sync.value_or(true) ? 1 : static_cast<double>(strategy.micro_batches());
  double reduce = 0, gather = 0;
  for (const CommunicationRow& row : run.report.communication) {
    if (row.group != "data" || row.count < 2) continue;
    double& most = row.op == "all_gather" ? gather : reduce;
    most = std::max(most, row.time_s / static_cast<double>(row.count));
  }
  return reductions * reduce + gather;
}

// Checks that a smaller spec takes no longer than the larger one, where it makes the same calls and its stages have the
// same layers.
const Run* smaller_is_not_slower(Checks& checks, std::string_view name, const Subject& s, const Json& larger) {
  const Run* run = checks.simulate(larger);
  if (run != nullptr && are_cut_alike(*run, s.run) && calls_of(*run) == calls_of(s.run))
    checks.not_slower(name, larger, *run, s.spec, kTolerance + buckets_s(s.run) / run->report.step_time_s);
  return run;
}

}  // namespace

// Seconds by which a run computes longer than another that has the same to compute: with faster NICs NCCL opens more
// channels, and with a faster host more transfers run beside compute, whose SMs compute lacks.
static double pressed_s(const Run& run, const Run& longer) {
  const auto computing = [](const Run& r) {
    return r.report.time_s[static_cast<std::size_t>(TimeKind::compute)] +
           r.report.time_s[static_cast<std::size_t>(TimeKind::recompute)];
  };
  return std::max(0.0, computing(longer) - computing(run));
}

// Checks that a step with faster parts takes no longer, but for compute that is pressed.
static void faster(Checks& checks, std::string_view name, const Subject& s, const Json& changed) {
  const Run* run = checks.simulate(changed);
  if (run == nullptr) return;
  checks.not_slower(name, s.spec, s.run, changed, kTolerance + pressed_s(s.run, *run) / s.run.report.step_time_s);
}

void faster_links(Checks& checks, const Subject& s) {
  const Cluster& c = s.run.spec.cluster;
  const Json wider = with(s.spec, "cluster.nic_Gbps", 2 * c.nic_Gbps);
  const Json network = s.spec["cluster"].value("network", Json::object());
  const Run* run = checks.simulate(wider);
  // NCCL's tuner does not know how far sites are apart, nor which NICs are slow: with wider NICs it may take an
  // algorithm that goes the way more often.
  const bool unknown = network.contains("sites") || network.contains("faults");
  const bool retuned = run != nullptr && unknown && algorithms(*run) != algorithms(s.run);
  if (!retuned) faster(checks, "nic x2", s, wider);
  if (2 * c.nics <= c.gpus_per_node) faster(checks, "nics x2", s, with(s.spec, "cluster.nics", 2 * c.nics));
}

void faster_gpu(Checks& checks, const Subject& s) {
  if (s.run.spec.strategy.offload.any()) return;  // another GPU may come with another host
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
  faster(checks, "half host time", s, half);
}

void more_work(Checks& checks, const Subject& s) {
  const Spec& spec = s.run.spec;
  more_micro_batches(checks, s);
  no_switches(checks, s);
  variation(checks, s);
  hashes(checks, s);
  if (s.spec["model"].is_object() && spec.strategy.stage_layers.empty()) {
    more_layers(checks, s);
    if (!spec.model.moe)
      smaller_is_not_slower(checks, "half feed forward", s,
                            with(s.spec, "model.feed_forward", 2 * spec.model.feed_forward));
    smaller_is_not_slower(checks, "half vocabulary", s, with(s.spec, "model.vocab", 2 * spec.model.vocab));
  }
  const Json longer = with(s.spec, "sequence", 2 * spec.sequence);
  const Run* run = smaller_is_not_slower(checks, "half sequence", s, longer);
  // With less compute, gradients of units that wait for a slow network pile up.
  if (run != nullptr && !row_of(spec.strategy.sharding).shards_gradients && !is_searched(spec.strategy) &&
      are_cut_alike(*run, s.run) &&
      static_cast<double>(run->report.memory.peak) < static_cast<double>(s.run.report.memory.peak) * .99)
    checks.violated("sequence x2 memory", "", s.spec, longer);
}

// Seconds of a run's bubble that go with what it computes longer than another run.
static double bubble_of_computing_s(const Run& run, const Run& shorter) {
  const auto part = [](const Run& r, TimeKind kind) { return r.report.time_s[static_cast<std::size_t>(kind)]; };
  const double compute = part(run, TimeKind::compute);
  const double less = std::max(0.0, compute - part(shorter, TimeKind::compute));
  return compute > 0 ? part(run, TimeKind::bubble) * less / compute : 0;
}

// Seconds of the sums of a tied table at the ends of a pipeline. Where data ranks have shards of the table, each sums
// its own: more ranks sum as much with more NICs.
static double tied_sum_s(const Run& run) {
  double sum = 0;
  for (const CommunicationRow& row : run.report.communication) sum += row.group == "embedding" ? row.time_s : 0;
  return sum;
}

void weak_scaling(Checks& checks, const Subject& s) {
  const Spec& spec = s.run.spec;
  const ShardingRow& row = row_of(spec.strategy.sharding);
  const bool lags = !spec.cluster.stragglers.empty() || spec.cluster.straggler_share > 0;
  if (spec.documents || spec.strategy.zero_quantize.any()) return;  // other documents; other nodes
  if (lags || is_offloaded(spec.strategy) || row.hybrid || row.servers || row.master) return;
  // With two copies of the model, stages that mirror each other may lie on more GPUs of a node, which have more NICs.
  if (model_copies(spec.strategy.schedule) > 1) return;
  if (spec.strategy.rank_order.starts_with("dp")) return;  // more data ranks put the others on other nodes
  // Ends of unlike numbers of ranks sum a tied table in one group: more of its ranks on a node have more of its NICs.
  if (spec.strategy.ends_unlike() && spec.model.tied_embeddings) return;
  Json more = with(s.spec, "strategy.data", 2 * spec.strategy.data);
  more = with(more, "gpus", 2 * spec.gpus);
  more = with(more, "cluster.nodes", 2 * spec.cluster.nodes);
  more = with(more, "strategy.global_batch", 2 * spec.strategy.global_batch);
  const Run* wide = checks.simulate(more);
  // sharding over one rank is replaced by none
  if (wide == nullptr || wide->spec.strategy.sharding != spec.strategy.sharding) return;
  if (remaps(s.run) || remaps(*wide)) return;
  // Twice the ranks may share the update and casts of fp32 shards, and NCCL may take another algorithm for them.
  double before = s.run.report.step_time_s;
  const auto let_off = [&](TimeKind kind) {
    const auto k = static_cast<std::size_t>(kind);
    before -= std::max(0.0, s.run.report.time_s[k] - wide->report.time_s[k]);
  };
  let_off(TimeKind::optimizer);
  // Muon's products of single matrices are divided over the ranks, and the host's launches of them.
  if (spec.strategy.optimizer.kind == OptimizerKind::muon) let_off(TimeKind::launch);
  // A rank alone also adds gradients of its units itself. Other stages wait for what a stage computes less: with such
  // units a pipeline's bubble shrinks by the share by which compute does.
  if (row.fp32_shards) {
    let_off(TimeKind::compute);
    before -= bubble_of_computing_s(s.run, *wide);
  }
  if (algorithms(s.run) != algorithms(*wide)) let_off(TimeKind::exposed_data);
  if (row.shards_gradients) before -= std::max(0.0, tied_sum_s(s.run) - tied_sum_s(*wide));
  const double after = wide->report.step_time_s;
  checks.went("weak scaling", s.run, 1 - after / before);
  if (after < before * (.95 - checks.slack(s.run)))
    checks.violated("weak scaling", fmt::format("{:.6g} -> {:.6g} s", before, after), s.spec, more);
}

}  // namespace orrery::test
