// `orrery whatif`: replays a measured run with something changed.
#include "sim/whatif/whatif.h"

#include <charconv>

#include <fmt/format.h>

#include "models/base/error.h"
#include "sim/cli/commands.h"
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
  const WhatifAnswer a = answer(read_measured_run(options.files), question);
  return {common.json ? whatif_json(a, question) : whatif_text(a, question, common.style)};
}

}  // namespace orrery
