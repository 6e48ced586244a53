#include "sim/generate/served_options.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/error.h"
#include "models/base/units.h"
#include "models/cost/generation_figures.h"
#include "models/load/aliases.h"
#include "sim/generate/served_spec.h"

namespace orrery {
namespace {

const nlohmann::json& serving() {
  static const nlohmann::json file = nlohmann::json::parse(data_file("serving.json"));
  return file;
}

// Throws Error for a misspelt key, which would count as one that is not given.
void require_known(const nlohmann::json& object, std::initializer_list<std::string_view> keys) {
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(keys, key) == keys.end()) throw Error("models/data/serving.json: unknown key " + key);
  }
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Whether options are of a row: of its stack, model and GPU, a release that its framework names, its lengths, so many
// clients, and whether its ranks hold parts of experts or of the attention's data. What options do not name is any.
bool are_of(const nlohmann::json& options, const ServedRow& row) {
  require_known(options, {"stacks", "models", "gpus", "releases", "input", "output", "tensor", "least_clients",
                          "experts_apart", "attention_apart", "options", "source"});
  const auto names = [&](const char* key, const auto& matches) {
    return !options.contains(key) || std::ranges::any_of(options.at(key), [&](const nlohmann::json& name) {
      return matches(name.get_ref<const std::string&>());
    });
  };
  const auto is = [](const std::string& own) { return [own](const std::string& name) { return name == own; }; };
  const auto release = [&](const std::string& name) { return contains(row.framework, name); };
  return names("stacks", is(stack_of(row))) && names("models", is(canonical_model(row.model))) &&
         names("gpus", is(row.gpu)) && names("releases", release) && options.value("input", row.input) == row.input &&
         options.value("output", row.output) == row.output && options.value("tensor", row.tensor) == row.tensor &&
         row.concurrency >= options.value("least_clients", 0) &&
         (row.expert > 1 || !options.value("experts_apart", false)) &&
         (row.attention_data > 1 || !options.value("attention_apart", false));
}

// Sets the most tokens of a pass so that it takes the answers of a data rank's clients and one prompt.
void fit_one_prompt(const ServedRow& row, std::int64_t spare, ServedOptions& options) {
  if (row.concurrency > 0) options.sequences = ceil_div(row.concurrency, row.attention_data);
  const std::int64_t answers = options.sequences * (1 + options.drafts);
  options.pass_tokens = ceil_div(answers + row.input + spare, spare) * spare;
}

void take(const nlohmann::json& given, ServedOptions& options) {
  require_known(given, {"sequences",       "pass_tokens",     "mixes",         "reserves",        "overlaps",
                        "of_free",         "tunes",           "sampler_bytes", "shortest",        "poll_passes",
                        "stream_passes",   "balance_passes",  "cuts_prompts",  "drafts",          "acceptance",
                        "gpus_per_switch", "fits_one_prompt", "tokenises",     "benchmark_input", "benchmark_output",
                        "source"});
  const auto set = [&](const char* key, auto& option) { option = given.value(key, option); };
  set("sequences", options.sequences);
  set("pass_tokens", options.pass_tokens);
  set("mixes", options.mixes);
  set("reserves", options.reserves);
  set("overlaps", options.overlaps);
  set("of_free", options.of_free);
  set("tunes", options.tunes);
  set("sampler_bytes", options.sampler_bytes);
  set("shortest", options.shortest);
  set("poll_passes", options.poll_passes);
  set("stream_passes", options.stream_passes);
  set("balance_passes", options.balance_passes);
  set("cuts_prompts", options.cuts_prompts);
  set("tokenises", options.tokenises);
  set("drafts", options.drafts);
  set("acceptance", options.acceptance);
  set("gpus_per_switch", options.gpus_per_switch);
  set("benchmark_input", options.benchmark_input);
  set("benchmark_output", options.benchmark_output);
}

}  // namespace

std::int64_t pass_tokens_of(const std::string& stack) {
  const nlohmann::json& stacks = serving().at("stacks");
  if (!stacks.contains(stack)) return 0;
  ServedOptions options;
  take(stacks.at(stack), options);
  return options.sequences > 1 ? options.pass_tokens : 0;
}

ServedOptions served_options(const ServedRow& row) {
  ServedOptions options;
  take(serving().at("stacks").at(stack_of(row)), options);
  for (const nlohmann::json& server : serving().at("servers")) {
    if (!contains(row.source, server.at("of_rows"))) continue;
    for (const nlohmann::json& some : server.at("options")) {
      if (!are_of(some, row)) continue;
      take(some.at("options"), options);
      if (const auto spare = some.at("options").find("fits_one_prompt"); spare != some.at("options").end())
        fit_one_prompt(row, *spare, options);
    }
  }
  if (options.tokenises) options.tokenise_s = generation_figures().tokenise_us * 1e-6;
  return options;
}

void tune(const ServedRow& row, double requests, ServedOptions& options) {
  constexpr double kMostOfABatch = 4096, kMostTokens = 32768;
  const double sequences = std::min(requests, kMostOfABatch) / static_cast<double>(row.pipeline);
  const double tokens =
      std::min(sequences * (1 + static_cast<double>(row.input) / static_cast<double>(row.output)), kMostTokens);
  const auto rounded_up = [](double value, std::int64_t step) {
    return step * static_cast<std::int64_t>(std::ceil(value / static_cast<double>(step)));
  };
  const std::int64_t of_sequences = sequences < 256 ? 32 : sequences < 1024 ? 128 : 256;
  options.sequences = std::max<std::int64_t>(64, rounded_up(sequences, of_sequences));
  const std::int64_t of_tokens = tokens < 4096 ? 256 : tokens < 8192 ? 512 : 1024;
  options.pass_tokens = std::max<std::int64_t>(2048, rounded_up(tokens, of_tokens));
}

}  // namespace orrery
