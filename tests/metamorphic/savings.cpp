// Sharding and recomputation save memory.
#include <algorithm>

#include <fmt/format.h>

#include "models/planner/make_plan.h"
#include "models/spec/sharding.h"
#include "tests/metamorphic/relations.h"

namespace orrery::test {
namespace {

Bytes optimizer_of(const Run& run) {
  return run.report.memory.ranks.front().memory.at_peak[static_cast<std::size_t>(Category::optimizer)];
}

double as_GiB(Bytes bytes) { return static_cast<double>(bytes) / 1073741824.0; }

void not_more(Checks& checks, const std::string& name, const Json& spec, const Json& other, Bytes before, Bytes after,
              double tolerance, Bytes fixed) {
  if (static_cast<double>(after) > static_cast<double>(before) * (1 + tolerance) + static_cast<double>(fixed))
    checks.violated(name, fmt::format("{:.4g} -> {:.4g} GiB", as_GiB(before), as_GiB(after)), spec, other);
}

// Gradients are held whole beside their reduction, unit by unit: the bytes of the largest, twice for a cast.
Bytes largest_unit(const Spec& spec) {
  std::int64_t most = 0;
  for (const Block& block : make_plan(spec).blocks) {
    std::int64_t sum = 0;
    for (const LocalParameter& p : block.parameters) sum += p.out * p.in;
    most = std::max(most, sum);
  }
  return 2 * most * storage_bytes(spec.strategy.gradient_precision);
}

// Seconds by which copies of gradients and states to and from the host, whose bytes do not depend on recomputation,
// hold up `less` longer than `more`: those of two stages of a node meet less where one stage's backward begins later.
double host_meetings_s(const Run& less, const Run& more) {
  const auto waited = [](const Run& run) { return run.report.time_s[static_cast<std::size_t>(TimeKind::offload)]; };
  return less.spec.strategy.pipeline > 1 ? std::max(0.0, waited(less) - waited(more)) : 0;
}

}  // namespace

// Uses enough ranks and layers that units which are gathered whole are a small share.
void sharding_order(Checks& checks, const Subject& s) {
  const Spec& spec = s.run.spec;
  const Strategy& st = spec.strategy;
  // DeepSpeed has extra buffers where states are sharded, and others flatten what they gather into lists.
  if (spec.software.name.find("deepspeed") != std::string::npos || spec.software.memory.gathers_lists) return;
  if (spec.model.layers < 6 * st.pipeline || is_offloaded(st) || st.data * st.context < 2) return;
  Json base = s.spec;
  for (const char* key : {"strategy.shard_group", "strategy.parameter_server", "strategy.no_sync", "strategy.units",
                          "strategy.zero_quantize"})
    base = with(base, key, nullptr);
  const Bytes unit = largest_unit(spec);
  const Run* before = nullptr;
  Json last;
  for (const ShardingRow& row : sharding_rows()) {
    if (row.name != "none" && !row.name.starts_with("zero")) continue;
    const Json next = with(base, "strategy.sharding", row.name);
    const Run* run = checks.simulate(next);
    if (run == nullptr) continue;
    if (before != nullptr) {
      not_more(checks, fmt::format("sharding memory {}", row.name), last, next, before->report.memory.peak,
               run->report.memory.peak, .02, (16 << 20) + unit);
      not_more(checks, fmt::format("sharding optimizer {}", row.name), last, next, optimizer_of(*before),
               optimizer_of(*run), .03, 4 << 20);
    }
    before = run;
    last = next;
  }
}

// Exceptions: offloaded activations are not recomputed; keys and values are gathered again with the ops that read them;
// BPipe's activations are evicted to other stages. A fully recomputed layer keeps its attention's activations while its
// MLP runs backward, which weighs more than the inputs of a few layers where attention stores its probabilities.
void recompute_order(Checks& checks, const Subject& s) {
  const Strategy& st = s.run.spec.strategy;
  if (st.offload.activations != MemoryTier::device || st.context > 1 || st.schedule == "bpipe") return;
  const Json base = with(s.spec, "strategy.recompute_layers", nullptr);
  constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
      {"none", "selective"}, {"selective", "full"}, {"none", "full"}};
  for (const auto& [less, more] : kPairs) {
    const Json a = with(base, "strategy.recompute", less), b = with(base, "strategy.recompute", more);
    const Run *from = checks.simulate(a), *to = checks.simulate(b);
    if (from == nullptr || to == nullptr) continue;
    const bool few = st.attention == Attention::unfused && more == "full" && s.run.spec.model.layers <= 2 * st.pipeline;
    if (!is_searched(st) && !few)
      not_more(checks, fmt::format("recompute memory {}", more), a, b, from->report.memory.peak, to->report.memory.peak,
               .01, (4 << 20) + unsplit_bytes(s.run));
    if (remaps(*from) || remaps(*to)) continue;
    const double meetings = meetings_s(*to, *from) + overlapping_meetings_s(*to, *from) + host_meetings_s(*from, *to);
    const double faster = 1 - (to->report.step_time_s + meetings) / from->report.step_time_s;
    checks.went("recompute time", *from, faster);
    if (faster > kTolerance + checks.slack(*from))
      checks.violated(fmt::format("recompute time {}", more),
                      fmt::format("{:.6g} -> {:.6g} s", from->report.step_time_s, to->report.step_time_s), a, b);
  }
}

}  // namespace orrery::test
