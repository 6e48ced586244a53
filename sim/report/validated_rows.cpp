#include "sim/report/validated_rows.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/spec/model.h"
#include "models/spec/sharding.h"

namespace orrery {
namespace {

constexpr const char* kRowsAbout =
    "Published steps that are not doubtful, and the error of our prediction (predicted / measured - 1). Columns: "
    "source, "
    "id, GPU, software, model, sharding, parameters, GPUs, tensor, pipeline, context, expert, sequence, error.";

nlohmann::json row_json(const ValidatedRow& r) {
  const double parameters = std::round(r.parameters / 1e6) * 1e6, error = std::round(r.error * 1e4) / 1e4;
  return {r.source, r.id,     r.gpu,      r.software, r.model,  r.sharding, parameters,
          r.gpus,   r.tensor, r.pipeline, r.context,  r.expert, r.sequence, error};
}

ValidatedRow row_of_json(const nlohmann::json& j) {
  return {.source = j.at(0),
          .id = j.at(1),
          .gpu = j.at(2),
          .software = j.at(3),
          .model = j.at(4),
          .sharding = j.at(5),
          .parameters = j.at(6),
          .gpus = j.at(7),
          .tensor = j.at(8),
          .pipeline = j.at(9),
          .context = j.at(10),
          .expert = j.at(11),
          .sequence = j.at(12),
          .error = j.at(13)};
}

double doublings(double a, double b) { return std::abs(std::log2(std::max(a, 1.0) / std::max(b, 1.0))); }

}  // namespace

ValidatedRow described(const Spec& spec) {
  const Strategy& s = spec.strategy;
  return {.source = "",
          .id = "",
          .gpu = std::string(name_of(spec.cluster.gpu.architecture)),
          .software = spec.software.name,
          .model = spec.model.name,
          .sharding = std::string(name_of(s.sharding)),
          .parameters = static_cast<double>(parameter_count(spec.model, spec.sequence)),
          .gpus = spec.gpus,
          .tensor = s.tensor,
          .pipeline = s.pipeline,
          .context = s.context,
          .expert = s.expert,
          .sequence = spec.sequence};
}

std::string validated_rows_json(const std::vector<ValidatedRow>& rows) {
  std::string text = nlohmann::ordered_json{{"_source", "published measurements"}, {"about", kRowsAbout}}.dump();
  text.pop_back();
  text += ", \"rows\": [";
  for (std::size_t i = 0; i < rows.size(); ++i) text += (i == 0 ? "\n" : ",\n") + row_json(rows[i]).dump();
  return text + "\n]}\n";
}

double distance(const ValidatedRow& a, const ValidatedRow& b) {
  double sum = doublings(a.parameters, b.parameters);
  for (const auto size : {&ValidatedRow::gpus, &ValidatedRow::tensor, &ValidatedRow::pipeline, &ValidatedRow::context,
                          &ValidatedRow::expert, &ValidatedRow::sequence})
    sum += doublings(static_cast<double>(a.*size), static_cast<double>(b.*size));
  if (a.software != b.software) sum += kOtherSoftware;
  if (a.gpu != b.gpu) sum += kOtherGpu;
  if (a.sharding != b.sharding) sum += 1;
  return sum;
}

std::vector<ValidatedRow> nearest_rows(const Spec& spec, std::size_t count) {
  const ValidatedRow here = described(spec);
  std::vector<ValidatedRow> rows;
  const nlohmann::json file = nlohmann::json::parse(data_file("validated_rows.json"));
  for (const nlohmann::json& j : file.at("rows")) rows.push_back(row_of_json(j));
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const ValidatedRow& a, const ValidatedRow& b) { return distance(here, a) < distance(here, b); });
  rows.resize(std::min(rows.size(), count));
  return rows;
}

std::vector<std::string> validated_stacks() {
  static const std::vector<std::string> names = [] {
    std::set<std::string> all;
    const nlohmann::json file = nlohmann::json::parse(data_file("validated_rows.json"));
    for (const nlohmann::json& j : file.at("rows")) all.insert(row_of_json(j).software);
    return std::vector<std::string>(all.begin(), all.end());
  }();
  return names;
}

Section nearest_section(const Spec& spec, std::size_t count) {
  Table t;
  t.columns = {{"published row", "", Align::left},
               {"GPU", "", Align::left},
               {"software", "", Align::left},
               {"model", "", Align::left},
               {"GPUs"},
               {"layout", "", Align::left},
               {"sequence"},
               {"error", "%"}};
  for (const ValidatedRow& r : nearest_rows(spec, count)) {
    std::string layout = fmt::format("TP{} PP{}", r.tensor, r.pipeline);
    if (r.context > 1) layout += fmt::format(" CP{}", r.context);
    if (r.expert > 1) layout += fmt::format(" EP{}", r.expert);
    if (r.sharding != "none") layout += ' ' + r.sharding;
    t.rows.push_back({r.id, r.gpu, r.software, r.model, fmt::format("{}", r.gpus), layout,
                      fmt::format("{}", r.sequence), fmt::format("{:+.1f}", 100 * r.error)});
  }
  return {"Nearest validated rows: predicted over measured step time", {}, t, {}};
}

}  // namespace orrery
