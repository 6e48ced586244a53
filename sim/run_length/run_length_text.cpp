#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/print/table.h"
#include "sim/report/goodput.h"
#include "sim/run_length/run_length.h"

namespace orrery {
namespace {

constexpr double kDay = 24 * 3600;

std::string seconds_text(Seconds s) {
  return s >= 3600 ? fmt::format("{:.3g} h", s / 3600)
         : s >= 60 ? fmt::format("{:.3g} min", s / 60)
                   : fmt::format("{:.3g} s", s);
}

std::string fault_text(const LongRun::Fault& fault) {
  if (fault.ends && fault.until <= fault.from) return "ends the job, which starts again on spare nodes";
  if (fault.ends) return "ends the job, which starts again when it is over";
  if (fault.lost == 0) return "slows no step";
  return fault.lost >= 1 ? std::string("holds training up")
                         : fmt::format("makes steps {:.3g} times as long", 1 / (1 - fault.lost));
}

std::string time_text_of(const LongRun::Fault& fault) {
  if (fault.until <= fault.from) return seconds_text(fault.from);
  return fmt::format("from {} to {}", seconds_text(fault.from), seconds_text(fault.until));
}

Table quantile_table(const Report& report, const LongRun& run, const RunQuantiles& q) {
  const auto [low, middle, high] = q.training_share;
  const auto share = [](double x) { return fmt::format("{:.2f}", 100 * x); };
  const auto steps = [&](double x) { return fmt::format("{:.0f}", x * run.length / report.step_time_s); };
  const auto count = [](double x) { return fmt::format("{:.0f}", x); };
  return {{{"", "", Align::left}, {"5 %", ""}, {"median", ""}, {"95 %", ""}},
          {{"useful time, %", share(low), share(middle), share(high)},
           {"steps", steps(low), steps(middle), steps(high)},
           {"failures", count(q.failures[0]), count(q.failures[1]), count(q.failures[2])}}};
}

Table time_table(const LongRun& run, const RunTimes& mean) {
  Table table{{{"where the time goes", "", Align::left}, {"time", "days"}, {"share", "%"}}, {}};
  for (const auto& [name, time] :
       {std::pair("training", mean.training), std::pair("steps undone by failures", mean.undone),
        std::pair("outages of links", mean.flaps),
        std::pair(run.faults.empty() ? "slower steps without a switch" : "slower steps beside faults", mean.slowed),
        std::pair("checkpoints", mean.checkpoints), std::pair("detection and restarts", mean.restarting),
        std::pair("waiting for a repair", mean.waiting)}) {
    if (time > 0)
      table.rows.push_back({name, fmt::format("{:.2f}", time / kDay), fmt::format("{:.2f}", 100 * time / run.length)});
  }
  return table;
}

Table kind_table(const LongRun& run, const RunQuantiles& q) {
  Table table{{{"failures by cause", "", Align::left}, {"mean", ""}}, {}};
  constexpr std::size_t kShown = 6;
  double others = 0;
  const auto kinds = failure_kinds();
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    if (k < kShown)
      table.rows.push_back({std::string(kinds[k].name), fmt::format("{:.1f}", q.mean.failures[k])});
    else
      others += q.mean.failures[k];
  }
  table.rows.push_back({"other", fmt::format("{:.1f}", others)});
  if (q.mean.faults > 0) table.rows.push_back({"fault at a given time", fmt::format("{:.1f}", q.mean.faults)});
  if (run.between_lost_planes > 0)
    table.rows.push_back({"switch or cable that ended nothing", fmt::format("{:.1f}", q.mean.survived)});
  return table;
}

}  // namespace

std::string run_length_text(const Spec& spec, const Report& report, const LongRun& run, const RunQuantiles& q,
                            std::int64_t plays) {
  std::string text = fmt::format("{:.4g} days of {} on {} x {}, played {} times\n", run.length / kDay, spec.model.name,
                                 spec.gpus, spec.cluster.gpu.name, plays);
  text +=
      fmt::format("  a step takes {}; {}\n", seconds_text(report.step_time_s),
                  run.between_failures > 0 ? "a failure every " + seconds_text(run.between_failures) : "no failures");
  if (run.stall > 0)
    text += fmt::format("  a checkpoint every {}, which holds training up for {}\n", seconds_text(run.interval),
                        seconds_text(run.stall));
  else
    text +=
        "  the time of a checkpoint is not known and counts as none: give cluster.nvme.write_GBps or "
        "strategy.checkpoint\n";
  if (run.restart > 0)
    text += fmt::format("  a failure is noticed after {}, a restart takes {}\n", seconds_text(run.detection),
                        seconds_text(run.restart));
  else
    text += "  the time of a restart is not known and counts as none: give cluster.failures.restart_s\n";
  if (run.between_flaps > 0)
    text += fmt::format("  a link goes down every {}, which holds training up for {}\n",
                        seconds_text(run.between_flaps), seconds_text(run.flap));
  if (run.between_lost_planes > 0)
    text += fmt::format(
        "  a switch or cable breaks every {} and is repaired in {}; meanwhile the job goes on over other planes, its "
        "steps {:.3g} times as long\n",
        seconds_text(run.between_lost_planes), seconds_text(run.repair), 1 / (1 - run.slowed_share));
  for (const LongRun::Fault& fault : run.faults)
    text += fmt::format("  {} after the begin a fault of {} {}\n", time_text_of(fault), fault.what, fault_text(fault));
  text += run.spares < 0 ? "  spare nodes never run out\n\n"
                         : fmt::format("  {} spare nodes; a repair takes {}\n\n", run.spares, seconds_text(run.repair));
  text += print(quantile_table(report, run, q), "  ") + "\n" + print(time_table(run, q.mean), "  ") + "\n" +
          print(kind_table(run, q), "  ");
  return text;
}

std::string run_length_json(const Report& report, const LongRun& run, const RunQuantiles& q, std::int64_t plays) {
  const auto three = [](const std::array<double, 3>& x) {
    return nlohmann::ordered_json{{"p5", x[0]}, {"p50", x[1]}, {"p95", x[2]}};
  };
  nlohmann::ordered_json kinds = nlohmann::ordered_json::object();
  for (std::size_t k = 0; k < failure_kinds().size(); ++k)
    kinds[std::string(failure_kinds()[k].name)] = q.mean.failures[k];
  const nlohmann::ordered_json j = {{"schema", "orrery.run_length/1"},
                                    {"plays", plays},
                                    {"length_s", run.length},
                                    {"step_time_s", report.step_time_s},
                                    {"between_failures_s", run.between_failures},
                                    {"interval_s", run.interval},
                                    {"stall_s", run.stall},
                                    {"restart_s", run.restart + run.detection},
                                    {"useful_share", three(q.training_share)},
                                    {"useful_share_mean", q.mean_share},
                                    {"failures", three(q.failures)},
                                    {"mean_s",
                                     {{"training", q.mean.training},
                                      {"undone", q.mean.undone},
                                      {"flaps", q.mean.flaps},
                                      {"slowed", q.mean.slowed},
                                      {"checkpoints", q.mean.checkpoints},
                                      {"restarting", q.mean.restarting},
                                      {"waiting", q.mean.waiting}}},
                                    {"failures_by_cause", kinds},
                                    {"switches_survived", q.mean.survived},
                                    {"faults_at_given_times", q.mean.faults}};
  return j.dump(2) + "\n";
}

}  // namespace orrery
