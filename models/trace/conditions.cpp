#include "models/trace/conditions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace orrery {
namespace {

// The largest readings of sensors that a file may have: beyond any GPU, so that a file with another unit is refused.
constexpr double kMostMHz = 1e5, kMostWatts = 1e5, kMostCelsius = 1000;
constexpr std::int64_t kMostReadings = std::int64_t{1} << 40;

}  // namespace

nlohmann::ordered_json json_of(const Conditions& c) {
  return {{"during", c.during},         {"samples", c.samples}, {"sm_MHz", {c.sm_low_MHz, c.sm_MHz, c.sm_high_MHz}},
          {"memory_MHz", c.memory_MHz}, {"power_W", c.power_W}, {"temperature_C", c.temperature_C},
          {"limited_by", c.limited_by}};
}

template <class Json>
Conditions conditions_of(const BasicJsonValue<Json>& from) {
  const BasicJsonValue<Json> sm = from.at("sm_MHz");
  const std::vector<double> clocks = sm.numbers(0, kMostMHz);
  if (clocks.size() != 3) sm.fail("is not the lowest, the median and the highest clock");
  Conditions c{.during = from.text_or("during", ""),
               .samples = from.at("samples").whole(0, kMostReadings),
               .sm_low_MHz = clocks[0],
               .sm_MHz = clocks[1],
               .sm_high_MHz = clocks[2],
               .memory_MHz = from.number_or("memory_MHz", 0, 0, kMostMHz),
               .power_W = from.number_or("power_W", 0, 0, kMostWatts),
               .temperature_C = from.number_or("temperature_C", 0, 0, kMostCelsius),
               .limited_by = {}};
  if (const auto reasons = from.find("limited_by")) {
    for (const auto& reason : reasons->items()) c.limited_by.push_back(reason.text());
  }
  return c;
}
template Conditions conditions_of(const JsonValue& from);
template Conditions conditions_of(const OrderedJsonValue& from);

std::string text_of(const Conditions& c) {
  if (!c.known()) return "not read";
  std::string text = fmt::format("{:.0f} MHz ({:.0f} to {:.0f}), {:.0f} W, {:.0f} C", c.sm_MHz, c.sm_low_MHz,
                                 c.sm_high_MHz, c.power_W, c.temperature_C);
  if (!c.limited_by.empty()) text += fmt::format(", limited by {}", fmt::join(c.limited_by, " and "));
  return text;
}

double clock_change(const Conditions& before, const Conditions& after) {
  return before.known() && after.known() && before.sm_MHz > 0 ? after.sm_MHz / before.sm_MHz : 1;
}

}  // namespace orrery
