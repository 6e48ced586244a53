#include "sim/whatif/whatif.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/quantile.h"
#include "sim/whatif/step_replay.h"

namespace orrery {
namespace {

using TimeOf = std::function<double(const RunNode&)>;

// The most ops whose slowdowns are answered, since each takes a replay of the run; a table shows fewer (whatif_text).
constexpr std::size_t kMostOps = 50;
// Ranks are together as long as their operations end within this share of a step of each other: launches of like
// kernels on two hosts differ by tens of microseconds, and steps take tens of milliseconds and more.
constexpr double kTogether = 0.01;

bool is_of(const RunNode& n, const std::function<bool(std::int32_t worker, std::int32_t stage)>& matches) {
  if (n.ranks.empty()) return matches(n.worker, n.stage);
  return std::any_of(n.ranks.begin(), n.ranks.end(),
                     [&](const auto& rank) { return matches(rank.first, rank.second); });
}

// Answers questions about one measured run, from the graphs of its steps.
class RunQuestions {
 public:
  explicit RunQuestions(MeasuredRun run) : run_(std::move(run)), graphs_(step_graphs(run_)) {
    struct Pool {
      std::vector<double> times, gaps;
      std::uint32_t op = 0;
    };
    std::map<std::uint32_t, Pool> pools;
    for (const StepGraph& g : graphs_) {
      for (const RunNode& n : g.nodes) {
        Pool& pool = pools[n.pool];
        pool.times.push_back(n.time);
        pool.gaps.push_back(std::max(0.0, n.gap));
        pool.op = n.op;
      }
    }
    even_.resize(pools.rbegin()->first + 1);
    gaps_.resize(even_.size());
    for (auto& [number, pool] : pools) {
      const double sum = std::accumulate(pool.times.begin(), pool.times.end(), 0.0);
      even_[number] = run_.transfers[pool.op] ? median(pool.times) : sum / static_cast<double>(pool.times.size());
      gaps_[number] = median(pool.gaps);
    }
  }

  // The mean over steps of the step time when steps are replayed with the given times of nodes. gaps: whether a node
  // begins a usual gap later than the end of what it waits for.
  double mean(const TimeOf& time, bool gaps) const {
    double sum = 0;
    for (const StepGraph& g : graphs_)
      sum += replayed(g, time, gaps ? usual_gap() : TimeOf([](const RunNode&) { return 0.0; }));
    return sum / static_cast<double>(graphs_.size());
  }

  void answer_times(WhatifAnswer& a) const {
    a.steps = std::ssize(graphs_);
    for (const StepGraph& g : graphs_) {
      if (!(g.time > 0)) throw Error(fmt::format("step {} of the run takes {} s; leave it out", g.step, g.time));
      const double time = replayed(g, measured(), usual_gap());
      a.measured += g.time / static_cast<double>(a.steps);
      a.replayed += time / static_cast<double>(a.steps);
      a.replay_error += std::abs(time / g.time - 1) / static_cast<double>(a.steps);
    }
    a.without_gaps = mean(measured(), false);
    a.even = mean(even(), false);
    if (!(a.without_gaps > 0 && a.even > 0))
      throw Error("the usual times of ops add up to a step of 0 s; give a run whose ops take time");
  }

  void answer_slowdowns(WhatifAnswer& a) const {
    for (const std::uint32_t op : longest_ops())
      a.by_op.push_back({run_.ops[op], slowdown(a, [&](const RunNode& n) { return n.op == op; })});
    const std::vector<double> times = times_by_worker();
    for (std::size_t w = 0; w < run_.workers.size(); ++w) a.by_worker.push_back({run_.workers[w], times[w] / a.even});
    for (std::int32_t s = 0; s < run_.stages && run_.stages > 1; ++s)
      a.by_stage.push_back({fmt::format("{}", s), slowdown(a, [&](const RunNode& n) {
                              return is_of(n, [&](std::int32_t, std::int32_t stage) { return stage == s; });
                            })});
    const auto worse = [](const Slowdown& x, const Slowdown& y) { return x.slowdown > y.slowdown; };
    for (auto* list : {&a.by_op, &a.by_worker, &a.by_stage}) std::stable_sort(list->begin(), list->end(), worse);
  }

  void answer_transfers(WhatifAnswer& a) const {
    std::map<std::uint32_t, TransferSplit> splits;
    for (const StepGraph& g : graphs_) {
      for (const RunNode& n : g.nodes) {
        if (!run_.transfers[n.op]) continue;
        TransferSplit& s = splits[n.op];
        s.op = run_.ops[n.op];
        s.moving += n.time * static_cast<double>(std::max<std::size_t>(1, n.ranks.size()));
        s.waiting += n.waited;
      }
    }
    const double ranks = static_cast<double>(run_.workers.size()) * run_.stages * static_cast<double>(graphs_.size());
    for (auto& [op, s] : splits) a.transfers.push_back({s.op, s.moving / ranks, s.waiting / ranks});
  }

  void answer_work(WhatifAnswer& a) const {
    const std::size_t stages = static_cast<std::size_t>(run_.stages);
    std::vector<std::vector<double>> took(run_.workers.size(), std::vector<double>(stages, 0)), owed = took;
    for (const StepGraph& g : graphs_) {
      for (const RunNode& n : g.nodes) {
        if (run_.transfers[n.op]) continue;
        took[static_cast<std::size_t>(n.worker)][static_cast<std::size_t>(n.stage)] += n.time;
        owed[static_cast<std::size_t>(n.worker)][static_cast<std::size_t>(n.stage)] += even_[n.pool];
      }
    }
    a.work = took;
    for (std::size_t w = 0; w < took.size(); ++w) {
      for (std::size_t s = 0; s < stages; ++s) a.work[w][s] = owed[w][s] > 0 ? took[w][s] / owed[w][s] : 1;
    }
  }

  // Finds where two ranks part: those of the question or, without one, the rank that costs most by itself and the one
  // that costs least.
  void answer_divergence(const WhatifQuestion& q, WhatifAnswer& a) const {
    if (run_.workers.size() < 2) {
      if (!q.between_first.empty()) throw Error("--between: the run has one rank");
      return;
    }
    a.between_first = q.between_first.empty() ? a.by_worker.back().name : q.between_first;
    a.between_second = q.between_first.empty() ? a.by_worker.front().name : q.between_second;
    a.divergence = first_divergence(run_, a.between_first, a.between_second, kTogether * a.measured);
  }

  // The function that gives the time of a node under the assumptions of the question.
  TimeOf asked(const WhatifQuestion& q) const {
    const std::int32_t worker = q.without_rank.empty() ? -1 : index_of(run_.workers, q.without_rank, "rank");
    const std::int32_t op = q.without_op.empty() ? -1 : index_of(run_.ops, q.without_op, "op");
    if (q.without_stage && (*q.without_stage < 0 || *q.without_stage >= run_.stages))
      throw Error(fmt::format("--without stage={}: the run has {} stages", *q.without_stage, run_.stages));
    const Ratios stages = q.even_stages ? stage_ratios() : Ratios();
    return [this, q, worker, op, stages](const RunNode& n) {
      if (static_cast<std::int32_t>(n.op) == op) return 0.0;
      const bool evened = is_of(
          n, [&](std::int32_t w, std::int32_t s) { return w == worker || (q.without_stage && s == *q.without_stage); });
      double time = evened ? even_[n.pool] : n.time;
      if (run_.transfers[n.op]) return time / q.network;
      // an even time is a mean over all stages already
      if (q.even_stages && !evened) time /= stages.at({n.stage, n.op});
      return time / q.compute;
    };
  }

 private:
  TimeOf measured() const {
    return [](const RunNode& n) { return n.time; };
  }
  TimeOf usual_gap() const {
    return [this](const RunNode& n) { return gaps_[n.pool]; };
  }
  TimeOf even() const {
    return [this](const RunNode& n) { return even_[n.pool]; };
  }

  double slowdown(const WhatifAnswer& a, const std::function<bool(const RunNode&)>& keeps) const {
    return mean([&](const RunNode& n) { return keeps(n) ? n.time : even_[n.pool]; }, false) / a.even;
  }

  // For each worker, the mean step time if its nodes alone take their measured times, without gaps.
  std::vector<double> times_by_worker() const {
    std::vector<double> times(run_.workers.size(), 0);
    for (const StepGraph& g : graphs_) {
      std::vector<std::vector<std::uint32_t>> nodes(run_.workers.size());
      const auto add = [&](std::int32_t worker, std::uint32_t node) {
        std::vector<std::uint32_t>& list = nodes[static_cast<std::size_t>(worker)];
        if (list.empty() || list.back() != node) list.push_back(node);
      };
      for (std::uint32_t i = 0; i < g.nodes.size(); ++i) {
        if (g.nodes[i].ranks.empty()) add(g.nodes[i].worker, i);
        for (const auto& [worker, stage] : g.nodes[i].ranks) add(worker, i);
      }
      StepReplay replay(g, even());
      for (std::size_t w = 0; w < times.size(); ++w) times[w] += replay.with_measured(nodes[w]);
    }
    for (double& time : times) time /= static_cast<double>(graphs_.size());
    return times;
  }

  static std::int32_t index_of(const std::vector<std::string>& names, const std::string& name, std::string_view what) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<std::int32_t>(found - names.begin());
    throw Error("--without " + std::string(what) + ": " +
                unknown_name(std::string(what), name, std::vector<std::string_view>(names.begin(), names.end())));
  }

  // The ops that take the most time, summed over ranks and steps, in the order of their indices.
  std::vector<std::uint32_t> longest_ops() const {
    std::vector<double> times(run_.ops.size(), 0);
    for (const StepGraph& g : graphs_) {
      for (const RunNode& n : g.nodes) times[n.op] += n.time;
    }
    std::vector<std::uint32_t> ops(times.size());
    std::iota(ops.begin(), ops.end(), 0U);
    std::stable_sort(ops.begin(), ops.end(), [&](std::uint32_t x, std::uint32_t y) { return times[x] > times[y]; });
    ops.resize(std::min(kMostOps, ops.size()));
    std::sort(ops.begin(), ops.end());
    return ops;
  }

  // by stage and op, as far as they occur: the mean time of the op on this stage over its mean on all stages
  using Ratios = std::map<std::pair<std::int32_t, std::uint32_t>, double>;

  Ratios stage_ratios() const {
    struct Sum {
      double time = 0, count = 0;
    };
    std::map<std::pair<std::int32_t, std::uint32_t>, Sum> sums;
    std::vector<Sum> by_op(run_.ops.size());
    for (const StepGraph& g : graphs_) {
      for (const RunNode& n : g.nodes) {
        for (Sum* s : {&sums[{n.stage, n.op}], &by_op[n.op]}) {
          s->time += n.time;
          s->count += 1;
        }
      }
    }
    Ratios ratios;
    for (const auto& [place, s] : sums) {
      const Sum& all = by_op[place.second];
      ratios[place] = s.time > 0 ? s.time / s.count / (all.time / all.count) : 1;
    }
    return ratios;
  }

  MeasuredRun run_;
  std::vector<StepGraph> graphs_;
  // by pool (operations that do equal work), the time that each takes in an even step: mean for compute, median for
  // transfers
  std::vector<double> even_;
  // For each pool (operations that do equal work), the usual gap: the median time from the end of what an operation
  // waits for to the operation's begin. A longer gap counts as a wait for something that the trace does not show, and
  // is not replayed.
  std::vector<double> gaps_;
};

nlohmann::ordered_json slowdowns_json(const std::vector<Slowdown>& list) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const Slowdown& s : list) json[s.name] = s.slowdown;
  return json;
}

nlohmann::ordered_json divergence_json(const WhatifAnswer& a) {
  if (!a.divergence) return nullptr;
  const Divergence& d = *a.divergence;
  static constexpr const char* kHow[] = {"runs", "begins", "takes"};
  return {{"ranks", {d.first, d.second}},
          {"how", kHow[static_cast<std::size_t>(d.how)]},
          {"behind", d.behind},
          {"step", d.step},
          {"number", d.number},
          {"op", d.op},
          {"begin_s", {d.begin_first, d.begin_second}},
          {"time_s", {d.time_first, d.time_second}},
          {"later_s", d.later}};
}

}  // namespace

bool WhatifQuestion::asks() const {
  return !without_rank.empty() || !without_op.empty() || without_stage || network != 1 || compute != 1 || even_stages;
}

WhatifAnswer answer(MeasuredRun run, const WhatifQuestion& question) {
  if (run.operations.empty()) throw Error("the run holds no operation; give a trace or rows of one");
  WhatifAnswer a;
  a.remarks = run.remarks;
  a.workers = run.workers;
  a.clock_shift = repair_clocks(run);
  const RunQuestions questions(std::move(run));
  questions.answer_times(a);
  a.asked = question.asks() ? questions.mean(questions.asked(question), true) : a.replayed;
  questions.answer_slowdowns(a);
  questions.answer_transfers(a);
  questions.answer_work(a);
  questions.answer_divergence(question, a);
  return a;
}

std::string whatif_json(const WhatifAnswer& a, const WhatifQuestion& question, const nlohmann::ordered_json& roofline) {
  nlohmann::ordered_json json = {{"schema", "orrery.whatif/1"},
                                 {"steps", a.steps},
                                 {"measured_step_time_s", a.measured},
                                 {"replayed_step_time_s", a.replayed},
                                 {"replay_error", a.replay_error},
                                 {"step_time_s", a.asked},
                                 {"without_gaps_s", a.without_gaps},
                                 {"even_s", a.even},
                                 {"launch_slowdown", a.measured / a.without_gaps},
                                 {"straggler_slowdown", a.without_gaps / a.even}};
  json["asked"] = question.asks();
  json["slowdown"] = {{"by_op", slowdowns_json(a.by_op)},
                      {"by_worker", slowdowns_json(a.by_worker)},
                      {"by_stage", slowdowns_json(a.by_stage)}};
  double moving = 0, waiting = 0;
  nlohmann::ordered_json transfers = nlohmann::ordered_json::array();
  for (const TransferSplit& t : a.transfers) {
    moving += t.moving;
    waiting += t.waiting;
    transfers.push_back({{"op", t.op}, {"transfer_s", t.moving}, {"skew_s", t.waiting}});
  }
  json["transfer_s"] = moving;
  json["skew_s"] = waiting;
  json["transfers"] = transfers;
  json["workers"] = a.workers;
  json["work"] = a.work;
  json["clock_shift_s"] = a.clock_shift;
  json["divergence"] = divergence_json(a);
  if (!roofline.is_null()) json["roofline"] = roofline;
  json["remarks"] = a.remarks;
  return json.dump(2) + '\n';
}

}  // namespace orrery
