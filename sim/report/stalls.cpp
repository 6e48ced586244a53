#include "sim/report/stalls.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "sim/print/text.h"

namespace orrery {

std::optional<StalledStep> stalled_step(const Spec& spec, Seconds step_time) {
  static const nlohmann::json stacks = nlohmann::json::parse(data_file("fitted.json")).at("stalls").at("stacks");
  const Strategy& s = spec.strategy;
  if (spec.generation || s.pipeline == 1 || s.data == 1) return std::nullopt;
  const auto own = std::ranges::find_if(
      stacks, [&](const nlohmann::json& stack) { return stack.at("of") == "software " + spec.software.name; });
  if (own == stacks.end()) return std::nullopt;
  const auto neighbours = static_cast<double>(std::min<std::int64_t>(2, s.pipeline - 1));
  const auto micro_batches = static_cast<double>(s.micro_batches());
  const Seconds wait = own->at("neighbour_us").get<double>() * kMicrosecond;
  return StalledStep{step_time + micro_batches * neighbours * wait, own->at("seen").get<std::int64_t>(),
                     own->at("runs").get<std::int64_t>()};
}

void add_stalls_remark(std::vector<std::string>& remarks, const Spec& spec, Seconds step_time) {
  const std::optional<StalledStep> stalled = stalled_step(spec, step_time);
  if (!stalled) return;
  remarks.push_back(
      fmt::format("stalls: in {} of {} published runs of {} with a pipeline and data ranks hosts waited in every "
                  "micro-batch; such a step takes {}",
                  stalled->seen, stalled->runs, spec.software.name, time_text(stalled->step_time)));
}

}  // namespace orrery
