#include "tests/metamorphic/checks.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"
#include "sim/predict/long_steps.h"
#include "sim/predict/predict.h"

namespace orrery::test {

bool is_searched(const Strategy& s) {
  if (s.pipeline == 1 || s.schedule == "file") return false;
  const ScheduleRow& row = find_schedule(s.schedule);
  return row.splits || row.vocabulary_barriers > 0;
}

bool is_asynchronous(const Strategy& s) {
  const bool servers = s.parameter_server && s.parameter_server->mode != "sync";
  return servers || (s.schedule != "file" && find_schedule(s.schedule).updates != Updates::flush);
}

bool is_offloaded(const Strategy& s) { return s.offload.any() || s.offload.tiling > 1; }

bool remaps(const Run& run) { return run.report.memory.device_calls > 0; }

Bytes unsplit_bytes(const Run& run) {
  const Spec& spec = run.spec;
  const std::int64_t experts = spec.model.moe ? spec.model.moe->experts / spec.strategy.expert : 0;
  const Bytes tensors = spec.model.layers / spec.strategy.pipeline * ((8 + 3 * experts) << 20);
  return std::min(tensors, run.report.memory.peak / 40);
}

bool close(double a, double b, double relative, double absolute) {
  return std::abs(a - b) <= std::max(relative * std::max(std::abs(a), std::abs(b)), absolute);
}

const Run* Checks::simulate(const Json& spec) {
  const std::string text = spec.dump();
  const auto [at, is_new] = runs_.try_emplace(text);
  if (!is_new && at->second != nullptr) return at->second.get();
  ++simulated;
  refusal.clear();
  try {
    Spec parsed = parse_spec(text, "spec.yaml");
    Profile profile = profile_for(parsed, "");
    Report report = predict_report(parsed, profile);
    at->second = std::make_unique<Run>(Run{std::move(parsed), std::move(profile), std::move(report)});
  } catch (const Error& e) {
    refusal = e.what();
    const bool names_a_place =
        refusal.find(".yaml") != std::string::npos || refusal.find("strategy") != std::string::npos ||
        refusal.find("model") != std::string::npos || refusal.find("cluster.") != std::string::npos;
    if (e.exit_code != 2) violated("exit", fmt::format("{}: {}", e.exit_code, refusal), spec);
    if (refusal.find('\n') != std::string::npos) violated("error lines", refusal, spec);
    if (!names_a_place) violated("error text", refusal, spec);
  } catch (const std::exception& e) {
    refusal = e.what();
    violated("exit", refusal, spec);
  }
  return at->second.get();
}

void Checks::violated(std::string_view relation, const std::string& what, const Json& spec, const Json& other) {
  ++violations[std::string(relation)];
  Json line = {{"number", number}, {"relation", relation}, {"what", what}, {"spec", spec}};
  if (!other.is_null()) line["other"] = other;
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

// Seconds in which a run's collectives of tensor, context and expert groups may have met its reductions and gathers on
// NICs: an order knows how long a collective takes alone.
static double met_on_nics_s(const Run& run) {
  double inner = 0, beside = 0;
  for (const CommunicationRow& row : run.report.communication) {
    if (row.link != "network") continue;
    if (row.group == "data" || row.group == "expert-data") beside += row.time_s - row.exposed_s;
    if (row.group == "tensor" || row.group == "context" || row.group == "expert") inner += row.exposed_s;
  }
  return std::max(0.0, std::min(inner, beside));
}

bool waits(const Run& run) {
  double sum = met_on_nics_s(run);
  for (const TimeKind kind : {TimeKind::exposed_data, TimeKind::exposed_pipeline, TimeKind::offload, TimeKind::launch})
    sum += run.report.time_s[static_cast<std::size_t>(kind)];
  return sum > kWaitingShare * run.report.step_time_s;
}

double Checks::slack(const Run& run) const {
  const Strategy& s = run.spec.strategy;
  if (!strict_ && is_searched(s)) return (waits(run) ? kWaitingTolerance : kSearchedTolerance) - kTolerance;
  const bool moves = s.schedule != "file" && find_schedule(s.schedule).moves != nullptr;
  return moves || s.offload.any() ? kContestedTolerance - kTolerance : 0;
}

void Checks::went(std::string_view relation, const Run& run, double excess) {
  if (!is_searched(run.spec.strategy)) return;
  double& most = furthest[std::string(relation)];
  most = std::max(most, excess);
}

double unsteady_s(const Run& run) {
  constexpr std::string_view kBegin = "step time: not steady: the step before took ";
  for (const std::string& remark : run.report.remarks) {
    if (remark.starts_with(kBegin)) return std::stod(remark.substr(kBegin.size()));
  }
  return 0;
}

// Seconds of all transfers over the network, which may run at the same time.
static double network_s(const Run& run) {
  double sum = 0;
  for (const CommunicationRow& row : run.report.communication) sum += row.link == "network" ? row.time_s : 0;
  return sum;
}

double meetings_s(const Run& run, const Run& longer) {
  double sum = 0;
  for (const CommunicationRow& a : run.report.communication) {
    for (const CommunicationRow& b : longer.report.communication) {
      const bool same = a.group == b.group && a.op == b.op && a.link == b.link && a.algorithm == b.algorithm;
      if (same && a.count == b.count && a.bytes_per_gpu == b.bytes_per_gpu) sum += std::max(0.0, b.time_s - a.time_s);
    }
  }
  // Rows are means over ranks; what holds up one stage may hold up those behind it.
  sum *= static_cast<double>(run.spec.strategy.pipeline);
  const double most = network_s(run) > run.report.step_time_s ? kCrowdedTolerance : kContestedTolerance;
  return std::min(sum, most * run.report.step_time_s) + unsteady_s(run) + unsteady_s(longer);
}

double overlapping_meetings_s(const Run& run, const Run& longer) {
  const Strategy& s = run.spec.strategy;
  const bool gathers_again = row_of(s.sharding).shards_parameters && (s.micro_batches() == 1 || s.units.model);
  if (!is_asynchronous(s) && !gathers_again) return 0;
  double sum = 0;
  for (const CommunicationRow& a : run.report.communication) {
    for (const CommunicationRow& b : longer.report.communication) {
      const bool same = a.group == b.group && a.op == b.op && a.link == b.link && a.algorithm == b.algorithm;
      if (same && a.bytes_per_gpu > 0) sum += std::max(0.0, b.time_s - a.time_s * b.bytes_per_gpu / a.bytes_per_gpu);
    }
  }
  return sum;
}

std::vector<std::string> calls_of(const Run& run) {
  std::vector<CommunicationRow> rows = run.report.communication;
  const auto bytes = [](const CommunicationRow& row) {
    return row.bytes_per_gpu / static_cast<double>(std::max<std::int64_t>(1, row.count));
  };
  std::ranges::stable_sort(rows, [&](const auto& a, const auto& b) {
    return std::tuple(a.group, a.op, bytes(b)) < std::tuple(b.group, b.op, bytes(a));
  });
  std::vector<std::string> calls;
  for (const CommunicationRow& row : rows) {
    if (row.algorithm != "send")
      calls.push_back(fmt::format("{} {} {} {}", row.group, row.op, row.algorithm, row.count));
  }
  return calls;
}

const Run* Checks::not_slower(std::string_view relation, const Json& spec, const Run& run, const Json& changed,
                              double tolerance) {
  const Run* other = simulate(changed);
  if (other == nullptr || remaps(run) || remaps(*other)) return other;
  const double before = run.report.step_time_s, after = other->report.step_time_s;
  const double met = meetings_s(run, *other) + overlapping_meetings_s(run, *other);
  const double allowed = before * (1 + tolerance) + met;
  went(relation, run, after / before - 1);
  if (after > allowed + before * slack(run))
    violated(relation, fmt::format("{:.6g} -> {:.6g} s ({:+.2f} %)", before, after, 100 * (after / before - 1)), spec,
             changed);
  return other;
}

}  // namespace orrery::test
