#include <algorithm>

#include <nlohmann/json.hpp>

#include "sim/cli/commands.h"
#include "sim/print/table.h"
#include "sim/runs/doctor.h"

namespace orrery {
namespace {

constexpr std::string_view health_word(Health health) {
  return health == Health::good ? "good" : health == Health::lacking ? "LACKING" : "absent";
}

constexpr std::string_view health_json(Health health) {
  return health == Health::lacking ? "lacking" : health_word(health);
}

std::string to_json(const std::vector<Finding>& findings, bool ready) {
  nlohmann::ordered_json root = {{"schema", "orrery.doctor/1"}, {"ready", ready}, {"checks", nlohmann::json::array()}};
  for (const Finding& f : findings)
    root["checks"].push_back({{"name", f.name},
                              {"state", health_json(f.health)},
                              {"found", f.found},
                              {"needed_for", f.needed_for},
                              {"mend", f.mend}});
  return root.dump(2) + '\n';
}

}  // namespace

Outcome doctor_command(const Common& common) {
  const std::vector<Finding> findings = diagnose(facts_here());
  const bool ready = std::ranges::none_of(findings, [](const Finding& f) { return f.health == Health::lacking; });
  const int status = ready ? 0 : 1;
  if (common.json) return {to_json(findings, ready), status};
  Table t;
  t.columns = {{"check", "", Align::left}, {"", "", Align::left}, {"here", "", Align::left}};
  std::string mends;
  for (const Finding& f : findings) {
    t.rows.push_back({f.name, std::string(health_word(f.health)), f.found});
    if (f.health != Health::good) mends += "  " + f.name + ", for " + f.needed_for + ": " + f.mend + '\n';
  }
  std::string text = print(t, "", common.style.columns);
  if (!mends.empty()) text += '\n' + heading("how to mend it", common.style) + '\n' + mends;
  return {text, status};
}

}  // namespace orrery
