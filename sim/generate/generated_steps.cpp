#include "sim/generate/generated_steps.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "models/cost/host_time.h"
#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"
#include "sim/engine/simulate.h"
#include "sim/predict/generation_profile.h"

namespace orrery {

std::vector<GenerationPass> shown_passes(const Spec& spec) {
  std::vector<GenerationPass> all = generation_passes(*spec.generation);
  const auto answers = [&](const GenerationPass& pass) { return pass.answers(*spec.generation); };
  const auto first = std::find_if(all.begin(), all.end(), answers);
  if (first == all.end()) return all;
  const auto tasks = static_cast<std::int64_t>(make_unchecked_plan(spec_of_pass(spec, *first)).task_count());
  const std::int64_t prompts = first - all.begin(), most = kMostShownTasks / std::max<std::int64_t>(1, tasks) - prompts;
  const auto shown = static_cast<std::size_t>(prompts + std::max<std::int64_t>(2, most));
  if (all.size() > shown) all.resize(shown);
  return all;
}

std::string cut_remark(const Spec& spec, const std::vector<GenerationPass>& shown) {
  const std::size_t all = generation_passes(*spec.generation).size();
  if (shown.size() == all) return "";
  return fmt::format("the timeline has the first {} of {} passes", shown.size(), all);
}

std::vector<std::string> names_of(const Spec& spec, const std::vector<GenerationPass>& passes) {
  const Generation& g = *spec.generation;
  std::vector<std::string> names;
  for (const GenerationPass& pass : passes) {
    names.push_back(pass.answers(g) ? fmt::format("decode {}", pass.cached - g.input + 1)
                    : pass.tokens < g.input
                        ? fmt::format("prefill {} to {}", pass.cached, pass.cached + pass.tokens - 1)
                        : "prefill");
  }
  return names;
}

std::vector<std::vector<Bytes>> cache_use(const Spec& spec, const Plan& plan,
                                          const std::vector<GenerationPass>& passes) {
  std::vector<std::set<std::int64_t>> layers(plan.classes.size());
  for (const Frame& f : plan.frames) {
    if (f.layer >= 0 && f.layer < spec.model.layers) layers[f.slot].insert(f.layer);
  }
  const std::int64_t sequences = spec.generation->batch / spec.strategy.data;
  std::vector<std::vector<Bytes>> used(plan.classes.size());
  for (std::size_t slot = 0; slot < layers.size(); ++slot) {
    for (const GenerationPass& pass : passes) {
      Bytes& bytes = used[slot].emplace_back(0);
      for (const std::int64_t layer : layers[slot])
        bytes += sequences * sequence_cache_bytes(spec, layer, pass.cached + pass.tokens);
    }
  }
  return used;
}

// Gives the host's work before a pass its time on every rank.
static void set_prepare_time(const Software& software, const Plan& plan, Timing& timing) {
  for (std::vector<OpTiming>& row : timing.rows) {
    for (std::size_t op = 0; op < row.size(); ++op) {
      if (plan.ops[op].name == kPreparePass) row[op].duration = picoseconds(software.host.step_us * kMicrosecond);
    }
  }
}

// Gives ops of passes over prompts the host's time to launch them, where passes of one token are CUDA graphs.
static void launch_prompts(const Spec& spec, const std::vector<GenerationPass>& passes, Prediction& p) {
  Software software = spec.software;
  if (!std::exchange(software.kernels.cuda_graphs, false)) return;
  const auto prompts =
      std::ranges::count_if(passes, [&](const GenerationPass& pass) { return !pass.answers(*spec.generation); });
  const std::int64_t end = prompts * p.plan.micro_batches / std::ssize(passes);
  std::set<std::uint32_t> ops;
  for (const Task& task : p.plan.tasks) {
    if (task.frame == kNone || p.plan.frames[task.frame].micro_batch < 0) continue;
    if (p.plan.frames[task.frame].micro_batch < end) ops.insert(task.op);
  }
  for (std::vector<OpTiming>& row : p.costs.timing.rows) {
    for (const std::uint32_t op : ops) row[op].issue = picoseconds(issue_time(p.plan.ops[op], software, p.profile));
  }
}

Prediction predict_passes(const Spec& spec, Profile profile, const std::vector<GenerationPass>& passes,
                          const std::atomic<bool>* stop) {
  const auto start = std::chrono::steady_clock::now();
  Prediction p;
  p.profile = generation_profile(spec, std::move(profile));
  p.cluster = spec.cluster;
  p.plan = make_generation_plan(spec, passes, spec.software.host.step_us > 0);
  try {
    p.costs = costs_of(p.plan, spec, p.profile);
  } catch (const Error& e) {
    throw Error(with_place(spec, e.what()), e.exit_code);
  }
  set_prepare_time(spec.software, p.plan, p.costs.timing);
  launch_prompts(spec, passes, p);
  p.trace = simulate(p.plan, p.costs.timing, stop);
  p.report = make_report(spec, p.plan, p.costs, p.trace, p.profile);
  if (std::string remark = experts_remark(spec, p.profile); !remark.empty())
    p.report.remarks.push_back(std::move(remark));
  for (double* rate : {&p.report.tokens_per_s, &p.report.tokens_per_s_per_gpu, &p.report.model_tflops_per_gpu,
                       &p.report.hardware_tflops_per_gpu, &p.report.mfu, &p.report.hfu, &p.report.mfu_full_attention,
                       &p.report.model_tflops_full_attention, &p.report.hardware_tflops_full_attention})
    *rate = 0;
  p.report.simulation.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return p;
}

}  // namespace orrery
