#include "tests/metamorphic/checks.h"

#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/schedule/schedules.h"
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
  Json line = {{"relation", relation}, {"what", what}, {"spec", spec}};
  if (!other.is_null()) line["other"] = other;
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

double Checks::slack(const Run& run) const {
  const Strategy& s = run.spec.strategy;
  if (!strict_ && is_searched(s)) return kSearchedSlack;
  const bool moves = s.schedule != "file" && find_schedule(s.schedule).moves != nullptr;
  return moves || s.offload.any() ? kContestedTolerance - kTolerance : 0;
}

void Checks::went(std::string_view relation, const Run& run, double excess) {
  if (!is_searched(run.spec.strategy)) return;
  double& most = furthest[std::string(relation)];
  most = std::max(most, excess);
}

const Run* Checks::not_slower(std::string_view relation, const Json& spec, const Run& run, const Json& changed,
                              double tolerance) {
  const Run* other = simulate(changed);
  if (other == nullptr || remaps(run) || remaps(*other)) return other;
  const double before = run.report.step_time_s, after = other->report.step_time_s;
  went(relation, run, after / before - 1);
  if (after > before * (1 + tolerance + slack(run)))
    violated(relation, fmt::format("{:.6g} -> {:.6g} s ({:+.2f} %)", before, after, 100 * (after / before - 1)), spec,
             changed);
  return other;
}

}  // namespace orrery::test
