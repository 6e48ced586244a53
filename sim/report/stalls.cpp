#include "sim/report/stalls.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "sim/print/text.h"

namespace orrery {

// Returns what is known of the second state of the spec's stack; null if nothing is, or the step has none.
static const nlohmann::json* state_of(const Spec& spec) {
  static const nlohmann::json stacks = nlohmann::json::parse(data_file("fitted.json")).at("stalls").at("stacks");
  if (spec.generation || spec.strategy.pipeline == 1 || spec.strategy.data == 1) return nullptr;
  const auto own = std::ranges::find_if(
      stacks, [&](const nlohmann::json& stack) { return stack.at("of") == "software " + spec.software.name; });
  return own == stacks.end() ? nullptr : &*own;
}

bool can_stall(const Spec& spec) { return state_of(spec) != nullptr; }

std::optional<StalledStep> stalled_step(const Spec& spec, Seconds step_time) {
  const Strategy& s = spec.strategy;
  const nlohmann::json* own = state_of(spec);
  if (own == nullptr) return std::nullopt;
  const auto neighbours = static_cast<double>(std::min<std::int64_t>(2, s.pipeline - 1));
  const auto micro_batches = static_cast<double>(s.micro_batches());
  const Seconds wait = own->at("neighbour_us").get<double>() * kMicrosecond;
  return StalledStep{step_time + micro_batches * neighbours * wait, own->at("seen").get<std::int64_t>(),
                     own->at("runs").get<std::int64_t>()};
}

void add_stalls_remark(Report& report, const Spec& spec) {
  const std::optional<StalledStep> stalled = stalled_step(spec, report.step_time_s);
  if (!stalled) return;
  MemoryReport memory;
  for (const RankMemory& rank : report.memory.stalled) add_rank(memory, rank);
  const std::string reserves =
      memory.ranks.empty() ? "" : " and reserves " + memory_text(static_cast<double>(memory.peak_reserved));
  report.remarks.push_back(
      fmt::format("stalls: in {} of {} published runs of {} with a pipeline and data ranks hosts waited in every "
                  "micro-batch; such a step takes {}{}",
                  stalled->seen, stalled->runs, spec.software.name, time_text(stalled->step_time), reserves));
}

}  // namespace orrery
