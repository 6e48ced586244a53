// Identities that hold in every report, however it was made.
#include <numeric>

#include <fmt/format.h>

#include "models/load/load_spec.h"
#include "models/partition/rank_groups.h"
#include "models/spec/second_model.h"
#include "sim/predict/predict.h"
#include "tests/metamorphic/relations.h"

namespace orrery::test {
namespace {

// JSON has no NaN or infinity: null stands in their place.
void check_numbers(Checks& checks, const Subject& s) {
  constexpr std::string_view kMayBeUnknown[] = {"/mfu", "/mfu_full_attention", "/hfu", "/cost/usd"};
  const Json report = Json::parse(to_json(s.run.report)), flat = report.flatten();
  for (const auto& [path, leaf] : flat.items()) {
    const Json& value = report[Json::json_pointer(path)];  // flatten() turns empty lists into null
    const bool may = std::find(std::begin(kMayBeUnknown), std::end(kMayBeUnknown), path) != std::end(kMayBeUnknown);
    if (value.is_null() && !may) checks.violated("finite", path, s.spec);
    if (value.is_number() && value.get<double>() < -1e-12)
      checks.violated("finite", fmt::format("{} = {}", path, value.dump()), s.spec);
  }
}

void check_time(Checks& checks, const Subject& s) {
  const Report& r = s.run.report;
  const double t = r.step_time_s, sum = std::accumulate(r.time_s.begin(), r.time_s.end(), 0.0);
  if (t <= 0) checks.violated("finite", fmt::format("step time {}", t), s.spec);
  if (!close(sum, t, 2e-6)) checks.violated("time parts", fmt::format("sum {:.9g}, step {:.9g}", sum, t), s.spec);
  if (r.step_time_low_s > t * (1 + 1e-9) || t > r.step_time_high_s * (1 + 1e-9))
    checks.violated("interval", fmt::format("{} {} {}", r.step_time_low_s, t, r.step_time_high_s), s.spec);
  if (!close(r.bubble_fraction * t, r.time_s[static_cast<std::size_t>(TimeKind::bubble)], 1e-6))
    checks.violated("bubble fraction", fmt::format("{}", r.bubble_fraction), s.spec);
  const Strategy& strategy = s.run.spec.strategy;
  // A stack that packs the output of attention widens it again in backward.
  const bool again = strategy.recompute.any() || s.run.spec.software.kernels.packs_attention_output;
  if (!again && r.time_s[static_cast<std::size_t>(TimeKind::recompute)] > 0)
    checks.violated("recompute time without", "", s.spec);
  const double tokens = static_cast<double>(strategy.global_batch * s.run.spec.sequence);
  if (!close(r.tokens_per_s * t, tokens, 1e-6))
    checks.violated("tokens", fmt::format("{}, {}", r.tokens_per_s * t, tokens), s.spec);
  if (!close(r.gpu_hours, t * static_cast<double>(s.run.spec.gpus) / 3600, 1e-6))
    checks.violated("gpu hours", "", s.spec);
}

void check_rates(Checks& checks, const Subject& s) {
  const Report& r = s.run.report;
  if (r.mfu == 0) return;
  const std::string all = fmt::format("MFU {}, of all pairs {}, HFU {}", r.mfu, r.mfu_full_attention, r.hfu);
  if (r.hfu < r.mfu * (1 - 1e-9)) checks.violated("hfu < mfu", all, s.spec);
  if (r.mfu > 1 || r.hfu > 1) checks.violated("mfu > 1", all, s.spec);
  if (r.mfu_full_attention < r.mfu * (1 - 1e-9)) checks.violated("fewer pairs without a mask", all, s.spec);
}

void check_memory(Checks& checks, const Subject& s) {
  const MemoryReport& m = s.run.report.memory;
  MemoryReport most;
  std::int64_t ranks = 0;
  for (const RankMemory& rank : m.ranks) {
    const SlotMemory& own = rank.memory;
    const Bytes sum = std::accumulate(own.at_peak.begin(), own.at_peak.end(), Bytes{0});
    ranks += rank.ranks;
    if (sum != own.peak) checks.violated("memory parts", fmt::format("{}: {} != {}", rank.name, sum, own.peak), s.spec);
    if (own.peak > own.peak_reserved || own.peak_reserved > rank.device_peak)
      checks.violated("memory order",
                      fmt::format("{}: {} {} {}", rank.name, own.peak, own.peak_reserved, rank.device_peak), s.spec);
    most.peak = std::max(most.peak, own.peak);
    most.peak_reserved = std::max(most.peak_reserved, own.peak_reserved);
    most.peak_device = std::max(most.peak_device, rank.device_peak);
  }
  if (m.peak != most.peak || m.peak_reserved != most.peak_reserved || m.peak_device != most.peak_device)
    checks.violated("memory maximum", fmt::format("{} {} {}", m.peak, m.peak_reserved, m.peak_device), s.spec);
  if (m.fits && m.peak_device > m.capacity)
    checks.violated("fits", fmt::format("{} > {}", m.peak_device, m.capacity), s.spec);
  if (ranks < s.run.spec.gpus) checks.violated("ranks", fmt::format("{} of {}", ranks, s.run.spec.gpus), s.spec);
}

Json without_clock(const Report& r) {
  Json json = Json::parse(to_json(r));
  json["simulation"].erase("wall_s");
  return json;
}

// A strategy's key set by --set gives the same result as the same value in the file.
void check_override(Checks& checks, const Subject& s) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : s.spec["strategy"].items()) {
    if (value.is_primitive()) keys.push_back(key);
  }
  const std::string key = s.draw.from(keys);
  const Json& value = s.spec["strategy"][key];
  const std::string word = value.is_string() ? value.get<std::string>() : value.dump();
  const Spec spec =
      parse_spec(with(s.spec, "strategy." + key, nullptr).dump(), "spec.yaml", {"strategy." + key + "=" + word});
  if (without_clock(predict(spec).report) != without_clock(predict(s.run.spec).report))
    checks.violated("set", key + "=" + word, s.spec);
}

}  // namespace

void sane(Checks& checks, const Subject& s) {
  check_numbers(checks, s);
  check_time(checks, s);
  check_rates(checks, s);
  check_memory(checks, s);
}

void determinism(Checks& checks, const Subject& s) {
  Checks again(false);
  const Run* other = again.simulate(s.spec);
  if (other == nullptr || without_clock(other->report) != without_clock(s.run.report))
    checks.violated("determinism", "another report of the same spec", s.spec);
  check_override(checks, s);
}

// Whether a class of ranks may have ranks that wait for others a little differently: with busy experts, which one class
// has although only some of its tensor or data groups may hold other ranks; and where replicas that lie otherwise on
// nodes are not told apart (tell_kinds_apart).
static bool has_mixed_classes(const Spec& spec) {
  return unevenly_loaded(spec) || spec.strategy.parameter_server || !spec.strategy.stage_replicas.empty() ||
         has_second_apart(spec);
}

void unfolded(Checks& checks, const Subject& s) {
  constexpr std::int64_t kMostRanks = 32, kMostTasks = 2'000'000;
  const std::int64_t ranks = s.run.spec.gpus;
  if (ranks > kMostRanks || static_cast<std::int64_t>(s.run.report.simulation.tasks) * ranks > kMostTasks) return;
  const Report u = predict(s.run.spec, true).report;
  const Report& r = s.run.report;
  const double slack = has_mixed_classes(s.run.spec) ? 1e-3 : 0;
  if (!close(u.step_time_s, r.step_time_s, slack))
    checks.violated("unfold", fmt::format("step {:.9g}, folded {:.9g}", u.step_time_s, r.step_time_s), s.spec);
  const auto same = [&](Bytes x, Bytes y) { return close(static_cast<double>(x), static_cast<double>(y), slack); };
  const MemoryReport &a = u.memory, &b = r.memory;
  if (!same(a.peak, b.peak) ||
      !close(static_cast<double>(a.peak_device), static_cast<double>(b.peak_device), 10 * slack) ||  // whole segments
      !same(a.tier_peak[index_of(MemoryTier::host)], b.tier_peak[index_of(MemoryTier::host)]))
    checks.violated(
        "unfold",
        fmt::format("memory {} {} {}, folded {} {} {}", a.peak, a.peak_device, a.tier_peak[index_of(MemoryTier::host)],
                    b.peak, b.peak_device, b.tier_peak[index_of(MemoryTier::host)]),
        s.spec);
  const auto bytes = [](const Report& report) {
    double sum = 0;
    for (const CommunicationRow& row : report.communication) sum += row.bytes_per_gpu;
    return sum;
  };
  if (!close(bytes(u), bytes(r), 1e-6, 1))
    checks.violated("unfold", fmt::format("bytes {:.9g}, folded {:.9g}", bytes(u), bytes(r)), s.spec);
}

}  // namespace orrery::test
