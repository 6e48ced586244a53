#include "sim/generate/generate.h"

#include <algorithm>

#include "models/layers/blocks.h"
#include "models/plan/repeat_steps.h"
#include "models/spec/prediction_module.h"
#include "sim/engine/simulate.h"
#include "sim/generate/largest_batch.h"
#include "sim/generate/pass_remark.h"
#include "sim/predict/generation_profile.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

// A stack captures passes of one token a sequence as CUDA graphs; passes over prompts, whose shapes differ, it launches
// op by op.
Spec pass_spec(const Spec& spec, std::int64_t tokens, std::int64_t cached) {
  Spec pass = spec;
  pass.sequence = tokens;
  pass.generation->cached = cached;
  if (cached < spec.generation->input) pass.software.kernels.cuda_graphs = false;
  return pass;
}

struct Pass {
  GeneratedPass made;
  Plan plan;
};

// Simulates one pass. Without pipeline stages, the next pass begins when this one has ended. With stages, passes follow
// each other without emptying the pipeline: the time from pass to pass is the simulated time of two passes less that of
// one, or longer if the next pass of a micro-batch would otherwise begin before its token has left the last stage.
// drafts_s: time in which tokens are proposed for the pass.
Pass pass_of(const Spec& spec, const Profile& profile, std::int64_t tokens, std::int64_t cached, double drafts_s,
             const std::atomic<bool>* stop) {
  Prediction p = predict(pass_spec(spec, tokens, cached), profile, false, stop);
  // The host's time between two passes, for scheduling, sampling and preparing the next pass (software.step_us).
  const double host = spec.software.host.step_us * 1e-6;
  double period = p.report.step_time_s + host;
  if (spec.strategy.pipeline > 1) {
    const double one = seconds(p.trace.step_time);
    const double two = seconds(simulate(repeat_steps(p.plan, {false, false}), p.costs.timing, stop).step_time);
    const auto m = static_cast<double>(p.plan.micro_batches);
    period = std::max(two - one, one - (two - one) * (m - 1) / m) + host;
  }
  period += drafts_s;
  const PassLimits limits = pass_limits(spec, p, period, host, drafts_s);
  return {{tokens, cached, period, std::move(p.report), limits, pass_reads(p.plan)}, std::move(p.plan)};
}

// Returns the spec of passes over prompts, and of memory: where tokens are proposed, prompts pass through the model's
// module too, whose weights and cache are in memory.
Spec prompt_spec(const Spec& spec) {
  Spec prompts = spec;
  if (spec.generation->drafts > 0) prompts.model = with_module(spec.model);
  return prompts;
}

// Seconds in which the module proposes tokens: the first one from all tokens that a pass may have accepted, each
// further one from the one before (TensorRT-LLM, tech_blog/blog2: MTP Eagle).
double drafts_s(const Spec& spec, const Profile& profile, std::int64_t cached, const std::atomic<bool>* stop) {
  const Generation& g = *spec.generation;
  if (g.drafts == 0) return 0;
  Spec module = spec;
  module.model = module_alone(spec.model);
  module.generation->drafts = 0;
  const auto pass_s = [&](std::int64_t tokens) {
    return predict(pass_spec(module, tokens, cached), profile, false, stop).report.step_time_s;
  };
  return pass_s(g.checked()) + (g.drafts > 1 ? static_cast<double>(g.drafts - 1) * pass_s(1) : 0);
}

Pass decode_pass(const Spec& spec, const Profile& profile, std::int64_t cached, const std::atomic<bool>* stop) {
  return pass_of(spec, profile, spec.generation->checked(), cached, drafts_s(spec, profile, cached, stop), stop);
}

// Memory of the rank that needs the most in a pass over prompts.
GeneratedMemory memory_of(const Spec& spec, const Plan& plan, const MemoryReport& m) {
  const Generation& g = *spec.generation;
  GeneratedMemory most;
  for (std::size_t c = 0; c < plan.classes.size() && c < m.ranks.size(); ++c) {
    GeneratedMemory of = kept_for_generation(spec, plan, c);
    of.working = std::max<Bytes>(0, m.ranks[c].device_peak - of.sum());
    if (of.sum() > most.sum()) most = of;
  }
  most.capacity = m.capacity;
  most.allowed = static_cast<Bytes>(g.memory_fraction * static_cast<double>(m.capacity));
  return most;
}

}  // namespace

std::int64_t GeneratedMemory::sequences_within(Bytes most) const {
  const Bytes room = most - weights - working;
  if (room < 0) return 0;
  return a_sequence() == 0 ? kMostSequences : std::min<std::int64_t>(kMostSequences, room / a_sequence());
}

GeneratedMemory kept_for_generation(const Spec& spec, const Plan& plan, std::size_t slot) {
  GeneratedMemory of;
  for (const Frame& frame : plan.frames) {
    const Block& block = plan.blocks[frame.block];
    if (frame.slot != slot || block.role != BlockRole::state) continue;
    for (std::size_t s = 0; s < block.buffers.size(); ++s) {
      if (block.buffers[s].home != MemoryTier::device) continue;
      (s == kKeysValues ? of.cache : s == kRecurrentStates ? of.states : of.weights) += block.buffers[s].bytes;
    }
  }
  of.cache_a_sequence = of.cache * spec.strategy.data / spec.generation->batch;
  of.states_a_sequence = of.states * spec.strategy.data / spec.generation->batch;
  return of;
}

void add_generation_figures(const Spec& spec, GenerationReport& r) {
  const Generation& g = *spec.generation;
  const std::int64_t steps = g.output - 1;  // tokens of decode passes, as the prompt's last pass makes the first token
  if (steps > 0) {
    const double period_s = mean_of_decode(r, [](const GeneratedPass& p) { return p.period_s; });
    r.token_s = period_s / g.tokens_a_pass();
    r.tokens_mfu =
        mean_of_decode(r, [](const GeneratedPass& p) { return p.report.mfu * p.report.step_time_s; }) / period_s;
    const double peak = spec.cluster.gpu.memory_GBps * 1e9;
    if (peak > 0)
      r.bandwidth_share = mean_of_decode(r, [](const GeneratedPass& p) { return p.reads.sum(); }) / period_s / peak;
  }
  double work = 0;  // seconds at the peak
  for (const GeneratedPass& pass : r.prefill) work += pass.report.mfu * pass.report.step_time_s;
  if (r.first_token_s > 0) r.prompts_mfu = work / r.first_token_s;
  r.total_s = r.first_token_s + static_cast<double>(steps) * r.token_s;
  r.tokens_per_s = static_cast<double>(g.batch * g.output) / r.total_s;
}

GeneratedMemory generation_memory(const Spec& spec, Profile profile, const std::atomic<bool>* stop) {
  const Generation& g = *spec.generation;
  profile = generation_profile(spec, std::move(profile));
  const std::int64_t tokens = g.chunk > 0 ? std::min(g.chunk, g.input) : g.input;
  const Prediction p = predict(pass_spec(prompt_spec(spec), tokens, 0), std::move(profile), false, stop);
  return memory_of(spec, p.plan, p.report.memory);
}

GenerationReport predict_generation(const Spec& spec, Profile profile, const std::atomic<bool>* stop) {
  GenerationReport result = predict_batch(spec, profile, stop);
  result.largest_batch = largest_batch(spec, profile, result.memory.allowed, stop);
  return result;
}

GenerationReport predict_batch(const Spec& spec, Profile profile, const std::atomic<bool>* stop) {
  const Generation& g = *spec.generation;
  profile = generation_profile(spec, std::move(profile));
  GenerationReport result;
  const std::int64_t chunk = g.chunk > 0 ? g.chunk : g.input;
  const Spec prompts = prompt_spec(spec);
  for (std::int64_t cached = 0; cached < g.input; cached += chunk) {
    Pass pass = pass_of(prompts, profile, std::min(chunk, g.input - cached), cached, 0, stop);
    result.first_token_s += pass.made.report.step_time_s + spec.software.host.step_us * 1e-6;
    if (cached == 0) result.memory = memory_of(spec, pass.plan, pass.made.report.memory);
    result.prefill.push_back(std::move(pass.made));
  }
  if (std::string remark = pass_remark(spec); !remark.empty())
    result.prefill.front().report.remarks.push_back(std::move(remark));
  const std::int64_t steps = g.output - 1;
  for (const std::int64_t done : {std::int64_t{0}, (steps - 1) / 2, steps - 1}) {
    if (steps > 0) result.decode.push_back(decode_pass(spec, profile, g.input + done, stop).made);
  }
  add_generation_figures(spec, result);
  return result;
}

double decode_period_s(const Spec& spec, Profile profile, std::int64_t cached) {
  profile = generation_profile(spec, std::move(profile));
  return decode_pass(spec, profile, cached, nullptr).made.period_s;
}

PromptTime prompt_time(const Spec& spec, Profile profile) {
  profile = generation_profile(spec, std::move(profile));
  Prediction p = predict(pass_spec(prompt_spec(spec), spec.generation->input, 0), profile);
  const RankClass& first = p.plan.classes.front();
  Picoseconds launch = 0, experts = 0;
  for (TaskId t = first.begin; t < first.end; ++t) {
    const OpTiming& op = p.costs.timing.of(0, p.plan.tasks[t].op);
    launch += op.issue;
    if (std::holds_alternative<GroupedGemm>(p.plan.op_of(t).work)) experts += op.duration;
  }
  for (std::vector<OpTiming>& row : p.costs.timing.rows)
    for (OpTiming& op : row) op.issue = 0;
  const Picoseconds device = simulate(p.plan, p.costs.timing).step_time;
  const Seconds between = spec.software.host.step_us * kMicrosecond;
  return {seconds(device) + between, seconds(launch) + between, seconds(experts)};
}

}  // namespace orrery
