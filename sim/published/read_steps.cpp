// This file reads measured steps of the user's own stack: lists of published measurements, and tables.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "models/base/csv.h"
#include "models/base/error.h"
#include "models/base/input_file.h"
#include "models/load/load_spec.h"
#include "sim/published/from_steps.h"
#include "sim/published/predict.h"

namespace orrery {
namespace {

constexpr double kMostStepSeconds = 1e9, kMostGiB = 1e9;

// The overrides in a cell: "strategy.tensor=4; strategy.micro_batch=2".
std::vector<std::string> overrides_in(const std::string& cell) {
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin < cell.size();) {
    const std::size_t end = std::min(cell.find(';', begin), cell.size());
    const std::size_t first = cell.find_first_not_of(" \t", begin);
    if (first < end) {
      const std::size_t last = cell.find_last_not_of(" \t", end - 1);
      all.push_back(cell.substr(first, last + 1 - first));
    }
    begin = end + 1;
  }
  return all;
}

StackStep step_in(const CsvRow& row, const std::string& table) {
  StackStep step;
  const std::filesystem::path near = std::filesystem::path(table).parent_path() / row.text("spec");
  const SpecText spec = read_spec_text(std::filesystem::exists(near) ? near.string() : row.text("spec"));
  step.text = spec.text;
  step.path = spec.path;
  if (row.has("overrides")) step.overrides = overrides_in(row.text("overrides"));
  step.id = row.text("spec");
  for (const std::string& o : step.overrides) step.id += ' ' + o;
  step.spec = parse_spec(step.text, step.path, step.overrides);
  step.step_time_s = row.number("seconds", 1e-6, kMostStepSeconds);
  if (row.has("memory_GiB") && !row.text("memory_GiB").empty())
    step.peak_memory_bytes = row.number("memory_GiB", 0, kMostGiB) * kGiB;
  return step;
}

std::vector<StackStep> steps_in_list(const std::string& path, const std::string& text) {
  std::vector<StackStep> steps;
  for (const PublishedRow& row : parse_published(text, path)) {
    if (!row.step_time_s) continue;
    steps.push_back({.id = row.id,
                     .text = row.spec,
                     .path = row.id,
                     .overrides = {},
                     .spec = parse_spec(row.spec, row.id),
                     .step_time_s = *row.step_time_s,
                     .peak_memory_bytes = row.peak_memory_bytes});
  }
  return steps;
}

}  // namespace

std::vector<StackStep> read_steps(const std::string& path) {
  const std::string text = read_input(path, kMostTables);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  std::vector<StackStep> steps;
  if (first != std::string::npos && (text[first] == '[' || text[first] == '{'))
    steps = steps_in_list(path, text);
  else
    read_csv(path, text,
             {.header = [](const std::vector<std::string>&) {},
              .row = [&](const CsvRow& row) { steps.push_back(step_in(row, path)); }});
  if (steps.empty()) throw Error(fmt::format("{}: has no step with a measured time", path));
  return steps;
}

}  // namespace orrery
