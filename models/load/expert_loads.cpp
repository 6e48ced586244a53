#include "models/load/expert_loads.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/base/input_file.h"
#include "models/base/json_value.h"
#include "models/base/sensible.h"

namespace orrery {

ExpertLoads parse_loads(std::string_view text, const std::string& path) {
  constexpr std::string_view kAdvice = "a list of lists of counts is needed, one per expert layer";
  const nlohmann::json root = parse_json(path, text, kAdvice);
  ExpertLoads rows;
  for (const JsonValue& row : JsonValue(root, path, std::string(kAdvice)).items())
    rows.push_back(row.numbers(0, sensible::kMostSize));
  return rows;
}

ExpertLoads read_expert_loads(const Model& model) {
  const Moe& moe = *model.moe;
  const auto bad = [&](const std::string& what) {
    return Error(fmt::format("{}: {}; one list of {} counts per expert layer is needed, or one for all", moe.loads_file,
                             what, moe.experts));
  };
  ExpertLoads rows = parse_loads(read_input(moe.loads_file, kMostTables), moe.loads_file);
  const std::int64_t layers = experts_before(model, model.layers);
  if (rows.empty() || (rows.size() > 1 && std::ssize(rows) < layers))
    throw bad(fmt::format("has no row {}", rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (std::ssize(rows[i]) != moe.experts || std::accumulate(rows[i].begin(), rows[i].end(), 0.0) <= 0)
      throw bad(fmt::format("row {} has {} counts", i, rows[i].size()));
  }
  return rows;
}

}  // namespace orrery
