#include "sim/validate/measured_generation.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/generation/generation_plan.h"
#include "models/plan/runtime_sizes.h"
#include "models/plan/unfold.h"
#include "models/planner/make_plan.h"
#include "sim/runs/measured.h"

namespace orrery {
namespace {

// A run's passes, each as a run of its own plan.
class PassRuns {
 public:
  PassRuns(const Spec& spec, const Plan& unfolded, std::span<const RankRun> runs)
      : spec_(spec),
        plan_(unfolded),
        runs_(runs),
        passes_(generation_passes(*spec.generation)),
        step_(median_step(step_times(runs))),
        each_(unfolded.micro_batches / static_cast<std::int64_t>(passes_.size())) {
    const std::vector<Picoseconds> times = step_times(runs);
    begin_ = runs[0].steps[step_].begin + runs[0].clock_offset;
    for (const RankRun& run : runs) begin_ = std::min(begin_, run.steps[step_].begin + run.clock_offset);
    ends_.assign(passes_.size(), begin_);
    for (std::size_t s = 0; s < runs.size(); ++s) {
      const RankClass& slot = plan_.classes[s];
      for (TaskId t = slot.begin; t < slot.end; ++t) {
        Picoseconds& end = ends_[pass_of(plan_.tasks[t].frame)];
        end = std::max(end, span(s, t).ended + runs[s].clock_offset);
      }
    }
  }

  const std::vector<GenerationPass>& passes() const { return passes_; }
  double begin_of(std::size_t k) const { return seconds((k == 0 ? begin_ : ends_[k - 1]) - begin_); }
  double end_of(std::size_t k) const { return seconds(ends_[k] - begin_); }

  GeneratedPass measured(std::size_t k) const {
    const Spec one = spec_of_pass(spec_, passes_[k]);
    const Plan pass = unfold(make_plan(one));
    const std::vector<RankRun> runs = runs_of(k);
    Report report = measured_report(one, pass, runs, measured_trace(pass, runs, 0));
    return {passes_[k].tokens, passes_[k].cached, end_of(k) - begin_of(k), std::move(report)};
  }

 private:
  const MeasuredSpan& span(std::size_t s, TaskId t) const {
    return runs_[s].steps[step_].spans[t - plan_.classes[s].begin];
  }
  std::size_t pass_of(std::uint32_t frame) const {
    return static_cast<std::size_t>(plan_.frames[frame].micro_batch / each_);
  }
  bool is_in(std::uint32_t frame, std::size_t k) const {
    const Frame& f = plan_.frames[frame];
    return f.micro_batch >= 0 && pass_of(frame) == k && plan_.blocks[f.block].role != BlockRole::exchange;
  }

  // The ranks' results as if pass k alone had been executed, without the tasks that hand over tokens.
  std::vector<RankRun> runs_of(std::size_t k) const {
    const std::vector<std::size_t> counts = counted_sizes(plan_);
    std::vector<RankRun> list;
    for (std::size_t s = 0; s < runs_.size(); ++s) {
      RankRun run = runs_[s];
      const MeasuredStep& whole = runs_[s].steps[step_];
      const Picoseconds begin = (k == 0 ? begin_ : ends_[k - 1]) - run.clock_offset;
      MeasuredStep step = {begin, ends_[k] - run.clock_offset, {}, {}};
      for (TaskId t = plan_.classes[s].begin; t < plan_.classes[s].end; ++t) {
        if (is_in(plan_.tasks[t].frame, k)) step.spans.push_back(span(s, t));
      }
      auto size = whole.sizes.begin();
      for (std::uint32_t f = 0; f < plan_.frames.size(); ++f) {
        if (plan_.frames[f].slot != s) continue;
        if (is_in(f, k)) step.sizes.insert(step.sizes.end(), size, size + static_cast<std::ptrdiff_t>(counts[f]));
        size += static_cast<std::ptrdiff_t>(counts[f]);
      }
      run.steps = {std::move(step)};
      run.unmarked.clear();
      run.memory.peak_task = kNone;
      list.push_back(std::move(run));
    }
    return list;
  }

  const Spec& spec_;
  const Plan& plan_;
  std::span<const RankRun> runs_;
  std::vector<GenerationPass> passes_;
  std::size_t step_;
  std::int64_t each_;  // micro-batches of a pass
  Picoseconds begin_ = 0;
  std::vector<Picoseconds> ends_;  // when the last rank ended each pass, on the clock of rank 0
};

GeneratedMemory memory_of(const Spec& spec, const Plan& plan, std::span<const RankRun> runs) {
  GeneratedMemory most;
  for (std::size_t s = 0; s < runs.size(); ++s) {
    const MeasuredMemory& m = runs[s].memory;
    GeneratedMemory of = kept_for_generation(spec, plan, s);
    of.capacity = m.capacity;
    of.working = std::max<Bytes>(0, m.peak_device - of.sum());
    if (of.sum() > most.sum()) most = of;
  }
  most.allowed = static_cast<Bytes>(spec.generation->memory_fraction * static_cast<double>(most.capacity));
  return most;
}

}  // namespace

GenerationReport measured_generation(const Spec& spec, const Plan& unfolded, std::span<const RankRun> runs) {
  const PassRuns passes(spec, unfolded, runs);
  const Generation& g = *spec.generation;
  GenerationReport r;
  r.source = runs[0].source;
  std::size_t prompts = 0;
  for (; prompts < passes.passes().size() && !passes.passes()[prompts].answers(g); ++prompts)
    r.prefill.push_back(passes.measured(prompts));
  r.first_token_s = passes.end_of(prompts - 1);
  r.memory = memory_of(spec, unfolded, runs);
  const std::size_t steps = passes.passes().size() - prompts;
  if (steps > 0) {
    for (const std::size_t done : {std::size_t{0}, (steps - 1) / 2, steps - 1})
      r.decode.push_back(passes.measured(prompts + done));
  }
  add_generation_figures(spec, r);
  if (steps > 0) {
    r.token_s = (passes.end_of(passes.passes().size() - 1) - r.first_token_s) / static_cast<double>(steps);
    r.total_s = r.first_token_s + static_cast<double>(steps) * r.token_s;
    r.tokens_per_s = static_cast<double>(g.batch * g.output) / r.total_s;
  }
  return r;
}

// Joins what another rank knows of a row, of which each has other columns, to `row`.
static void join(LogitRow& row, const LogitRow& other) {
  const auto add = [](double& largest, double with, std::initializer_list<std::pair<double*, double>> sums) {
    const double most = std::max(largest, with);
    for (const auto& [sum, added] : sums) *sum = *sum * std::exp(largest - most) + added * std::exp(with - most);
    largest = most;
  };
  if (row.columns == 0) {
    row = other;
    return;
  }
  row.columns += other.columns;
  row.distance += other.distance;
  row.furthest = std::max(row.furthest, other.furthest);
  add(row.wide_largest, other.wide_largest, {{&row.wide_sum, other.wide_sum}, {&row.weighted, other.weighted}});
  add(row.narrow_largest, other.narrow_largest, {{&row.narrow_sum, other.narrow_sum}});
}

LogitErrors logit_errors(std::span<const RankRun> runs) {
  std::map<std::pair<std::int64_t, std::int64_t>, LogitRow> rows;
  for (const RankRun& run : runs) {
    for (const LogitRow& row : run.logits) join(rows[{row.sequence, row.position}], row);
  }
  LogitErrors e;
  double columns = 0;
  for (const auto& [key, row] : rows) {
    ++e.rows;
    columns += static_cast<double>(row.columns);
    e.mean += row.distance;
    e.largest = std::max(e.largest, row.furthest);
    e.divergence += row.weighted / row.wide_sum - row.wide_largest - std::log(row.wide_sum) + row.narrow_largest +
                    std::log(row.narrow_sum);
    e.same_tokens += row.same_token ? 1 : 0;
  }
  if (e.rows == 0) return e;
  e.mean /= columns;
  e.divergence /= static_cast<double>(e.rows);
  e.same_tokens /= static_cast<double>(e.rows);
  return e;
}

std::string text_of(const LogitErrors& e) {
  if (e.rows == 0) return "";
  return fmt::format(
      "  error of the logits, against the model as it is: mean {:.3g}, largest {:.3g}, KL {:.3g} nats; after "
      "the same text {:.1f} % of {} greedy tokens are the same\n",
      e.mean, e.largest, e.divergence, 100 * e.same_tokens, e.rows);
}

std::map<std::int64_t, std::vector<std::int64_t>> texts_of(std::span<const RankRun> runs) {
  std::map<std::int64_t, std::vector<std::int64_t>> all;
  for (const RankRun& run : runs) all.insert(run.texts.begin(), run.texts.end());
  return all;
}

std::string texts_text(std::span<const RankRun> runs) {
  constexpr std::size_t kSequences = 4, kTokens = 16;
  std::string text;
  std::size_t shown = 0;
  for (const auto& [number, tokens] : texts_of(runs)) {
    if (shown++ == kSequences) break;
    const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(std::min(kTokens, tokens.size()));
    text += fmt::format("  sequence {:<3} {}{}\n", number, fmt::join(tokens.begin(), end, " "),
                        tokens.size() > kTokens ? " ..." : "");
  }
  return text;
}

}  // namespace orrery
