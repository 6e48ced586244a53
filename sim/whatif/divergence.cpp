#include "sim/whatif/divergence.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "models/base/error.h"
#include "models/base/names.h"

namespace orrery {
namespace {

// Operations of one rank in one step, in the order in which they begin.
using RankStep = std::vector<const MeasuredOp*>;

std::int32_t worker_named(const MeasuredRun& run, const std::string& name) {
  const auto found = std::find(run.workers.begin(), run.workers.end(), name);
  if (found != run.workers.end()) return static_cast<std::int32_t>(found - run.workers.begin());
  throw Error("--between: " +
              unknown_name("rank", name, std::vector<std::string_view>(run.workers.begin(), run.workers.end())));
}

std::map<std::int64_t, RankStep> steps_of_worker(const MeasuredRun& run, std::int32_t worker) {
  std::map<std::int64_t, RankStep> steps;
  for (const MeasuredOp& o : run.operations) {
    if (o.worker == worker) steps[o.step].push_back(&o);
  }
  for (auto& [step, list] : steps)
    std::stable_sort(list.begin(), list.end(), [](const auto* a, const auto* b) { return a->begin < b->begin; });
  return steps;
}

// Returns the step's operations by stage and the work that they do, so that the same work is found on another rank.
std::map<std::pair<std::int32_t, std::uint32_t>, const MeasuredOp*> by_work(const RankStep& step) {
  std::map<std::pair<std::int32_t, std::uint32_t>, const MeasuredOp*> result;
  for (const MeasuredOp* o : step) result.try_emplace({o->stage, o->pool}, o);
  return result;
}

std::string text_of_op(const MeasuredRun& run, const MeasuredOp& o) {
  return o.pool < run.pool_names.size() ? run.pool_names[o.pool] : run.ops[o.op];
}

// Finds where two ranks first differ in one step.
class StepDifference {
 public:
  StepDifference(const MeasuredRun& run, const RankStep& a, const RankStep& b, double tolerance)
      : run_(run), a_(a), b_(b), tolerance_(tolerance), start_(std::min(a.front()->begin, b.front()->begin)) {}

  std::optional<Divergence> find() const {
    std::optional<Divergence> best = timing();
    for (const bool first : {true, false}) {
      const std::optional<Divergence> alone = alone_on(first);
      if (alone && (!best || begin_of(*alone) < begin_of(*best))) best = alone;
    }
    return best;
  }

 private:
  static double begin_of(const Divergence& d) {
    return d.how == Divergence::How::runs ? std::max(d.begin_first, d.begin_second)
                                          : std::min(d.begin_first, d.begin_second);
  }

  std::optional<Divergence> timing() const {
    const auto there = by_work(b_);
    for (std::size_t i = 0; i < a_.size(); ++i) {
      const MeasuredOp& x = *a_[i];
      const auto found = there.find({x.stage, x.pool});
      if (found == there.end()) continue;
      const MeasuredOp& y = *found->second;
      if (std::abs(y.end - x.end) <= tolerance_) continue;
      Divergence d{.step = x.step, .number = static_cast<std::int64_t>(i) + 1, .op = text_of_op(run_, x)};
      const bool begins = std::abs(y.begin - x.begin) > std::abs((y.end - y.begin) - (x.end - x.begin));
      d.how = begins ? Divergence::How::begins : Divergence::How::takes;
      d.begin_first = x.begin - start_;
      d.begin_second = y.begin - start_;
      d.time_first = x.end - x.begin;
      d.time_second = y.end - y.begin;
      d.later = std::abs(y.end - x.end);
      d.behind = run_.workers[static_cast<std::size_t>(y.end > x.end ? y.worker : x.worker)];
      return d;
    }
    return std::nullopt;
  }

  // Finds the first operation that one rank runs and the other does not.
  std::optional<Divergence> alone_on(bool first) const {
    const RankStep &own = first ? a_ : b_, &other = first ? b_ : a_;
    const auto there = by_work(other);
    for (std::size_t i = 0; i < own.size(); ++i) {
      const MeasuredOp& x = *own[i];
      if (there.contains({x.stage, x.pool})) continue;
      Divergence d{.how = Divergence::How::runs, .step = x.step, .number = static_cast<std::int64_t>(i) + 1};
      d.op = text_of_op(run_, x);
      (first ? d.begin_first : d.begin_second) = x.begin - start_;
      (first ? d.time_first : d.time_second) = x.end - x.begin;
      d.behind = run_.workers[static_cast<std::size_t>(x.worker)];
      return d;
    }
    return std::nullopt;
  }

  const MeasuredRun& run_;
  const RankStep &a_, &b_;
  double tolerance_, start_;
};

}  // namespace

std::optional<Divergence> first_divergence(const MeasuredRun& run, const std::string& first, const std::string& second,
                                           double tolerance) {
  const auto a = steps_of_worker(run, worker_named(run, first)), b = steps_of_worker(run, worker_named(run, second));
  bool shared = false;
  for (const auto& [step, own] : a) {
    const auto there = b.find(step);
    if (there == b.end()) continue;
    shared = true;
    std::optional<Divergence> d = StepDifference(run, own, there->second, tolerance).find();
    if (!d) continue;
    d->first = first;
    d->second = second;
    return d;
  }
  if (!shared) throw Error("--between: ranks " + first + " and " + second + " have no step in common");
  return std::nullopt;
}

}  // namespace orrery
