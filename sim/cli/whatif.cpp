// `orrery whatif`: replays a measured run with something changed.
#include "sim/whatif/whatif.h"

#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/spec/cluster.h"
#include "sim/calibrate/roofline.h"
#include "sim/cli/commands.h"
#include "sim/page/whatif.h"
#include "sim/whatif/whatif_text.h"

namespace orrery {
namespace {

// Splits "KEY=VALUE" at the equals sign; throws Error if the key or the value is missing.
std::pair<std::string, std::string> assignment(const std::string& option, const std::string& text,
                                               std::string_view known) {
  const std::size_t sign = text.find('=');
  if (sign == std::string::npos || sign == 0 || sign + 1 == text.size())
    throw Error(fmt::format("{} {}: is not of the form {}", option, text, known));
  return {text.substr(0, sign), text.substr(sign + 1)};
}

double factor_of(const std::string& text, const std::string& value) {
  double factor = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), factor);
  if (error != std::errc{} || end != value.data() + value.size() || !(factor > 0 && factor <= 1e6))
    throw Error(fmt::format("--speed {}: is no factor above 0", text));
  return factor;
}

void add_without(const std::string& text, WhatifQuestion& question) {
  constexpr std::string_view kForm = "rank=NAME, stage=N or op=NAME";
  const auto [key, value] = assignment("--without", text, kForm);
  if (key == "rank") {
    question.without_rank = value;
  } else if (key == "op") {
    question.without_op = value;
  } else if (key == "stage") {
    std::int32_t stage = -1;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), stage);
    if (error != std::errc{} || end != value.data() + value.size())
      throw Error(fmt::format("--without {}: the stage is no number", text));
    question.without_stage = stage;
  } else {
    throw Error(fmt::format("--without {}: is not of the form {}", text, kForm));
  }
}

void add_between(const std::string& text, WhatifQuestion& question) {
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos || comma == 0 || comma + 1 == text.size())
    throw Error(fmt::format("--between {}: is not of the form A,B", text));
  question.between_first = text.substr(0, comma);
  question.between_second = text.substr(comma + 1);
  if (question.between_first == question.between_second)
    throw Error(fmt::format("--between {}: names the same rank twice", text));
}

void add_speed(const std::string& text, WhatifQuestion& question) {
  constexpr std::string_view kForm = "network=FACTOR or compute=FACTOR";
  const auto [key, value] = assignment("--speed", text, kForm);
  if (key != "network" && key != "compute") throw Error(fmt::format("--speed {}: is not of the form {}", text, kForm));
  (key == "network" ? question.network : question.compute) = factor_of(text, value);
}

}  // namespace

Outcome whatif_command(const WhatifOptions& options, const Common& common) {
  WhatifQuestion question{.even_stages = options.even_stages};
  for (const std::string& text : options.without) add_without(text, question);
  for (const std::string& text : options.speed) add_speed(text, question);
  if (!options.between.empty()) add_between(options.between, question);
  const std::optional<Gpu> gpu = options.roofline.empty() ? std::nullopt : std::optional(find_gpu(options.roofline));
  for (const std::string& file : options.files) {
    if (gpu && file.ends_with(".csv"))
      throw Error(fmt::format("--roofline: {}: rows of ops say no shapes; give traces of PyTorch's profiler", file));
  }
  const WhatifAnswer a = answer(read_measured_run(options.files), question);
  std::vector<RoofRow> roofs;
  if (gpu) {
    std::vector<Imported> files;
    for (const std::string& file : options.files) files.push_back(import_file(file));
    roofs = roofline_of(files, *gpu);
  }
  Outcome outcome;
  outcome.text = common.json
                     ? whatif_json(a, question, gpu ? roofline_json(roofs) : nullptr)
                     : whatif_text(a, question, common.style) + (gpu ? roofline_text(roofs, *gpu, common.style) : "");
  if (common.page)
    outcome.page =
        whatif_page({a, question, gpu ? roofline_text(roofs, *gpu, {}) : "", common.command, common.version});
  return outcome;
}

}  // namespace orrery
