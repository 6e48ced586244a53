#include "sim/generate/served.h"

#include <algorithm>
#include <cmath>
#include <regex>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/base/input_file.h"
#include "models/base/json_value.h"
#include "models/cost/generation_figures.h"
#include "models/load/aliases.h"
#include "models/load/load_spec.h"
#include "sim/generate/generate.h"
#include "sim/generate/pass_times.h"
#include "sim/generate/served_options.h"
#include "sim/generate/served_spec.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

std::string text_at(const JsonValue& row, std::string_view key) {
  const auto found = row.find(key);
  return found && found->is_text() ? found->text() : "";
}

std::int64_t count_at(const JsonValue& row, std::string_view key, std::int64_t otherwise) {
  constexpr double kMost = 1e9;
  const auto found = row.find(key);
  return found && found->is_number() ? static_cast<std::int64_t>(found->number(0, kMost)) : otherwise;
}

bool says(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Some rows of one table multiply the degrees of tensor and expert parallelism, whose ranks are the same GPUs; their
// ids end in the degrees that were started: "..._tp8_ep8_937" on 8 GPUs, not 64.
void restate_ranks(ServedRow& row) {
  std::smatch degrees;
  static const std::regex kDegrees("_tp([0-9]{1,4})_ep([0-9]{1,4})_[0-9]+$");
  if (!std::regex_search(row.id, degrees, kDegrees)) return;
  const std::int64_t tensor = std::stoll(degrees[1]), expert = std::stoll(degrees[2]);
  if (expert < 2 || row.gpus != tensor * expert) return;
  row.gpus = row.tensor = tensor;
  row.expert = expert;
  // vLLM's rows of this kind have the values of rows without data ranks, to a hundredth.
  const bool vllm = row.framework.starts_with("vllm");
  row.attention_data = row.attention_data > 1 && !vllm ? tensor : 1;
}

ServedRow row_of(const JsonValue& item) {
  constexpr double kMostRate = 1e6, kMostMs = 1e9;
  ServedRow row{.id = item.at("id").text(),
                .source = text_at(item, "source"),
                .mode = text_at(item, "mode"),
                .framework = text_at(item, "framework"),
                .model = text_at(item, "model"),
                .gpu = text_at(item, "gpu"),
                .precision = text_at(item, "precision"),
                .gemm_precision = text_at(item, "gemm"),
                .cache_precision = text_at(item, "kv_cache"),
                .metric = item.at("metric").text()};
  row.tensor = count_at(item, "tensor", 1);
  row.pipeline = count_at(item, "pipeline", 1);
  row.gpus = count_at(item, "gpus", row.tensor * row.pipeline);
  row.attention_data = std::max<std::int64_t>(1, count_at(item, "attention_data", 1));
  row.expert = count_at(item, "expert", 0);
  row.input = count_at(item, "isl", 0);
  row.output = count_at(item, "osl", 0);
  row.batch = count_at(item, "batch", 0);
  row.concurrency = count_at(item, "concurrency", 0);
  row.requests = count_at(item, "requests", 0);
  row.rate = item.number_or("qps", 0, 0, kMostRate);
  row.first_token_ms = item.number_or("ttft_mean_ms", 0, 0, kMostMs);
  row.token_ms = item.number_or("itl_mean_ms", 0, 0, kMostMs);
  restate_ranks(row);
  const JsonValue value = item.at("value");
  row.value = value.is_number() ? std::vector{value.number(0, 1e12)} : value.numbers(0, 1e12);
  return row;
}

GenerationReport report_of(const Spec& spec) { return predict_batch(spec, profile_for(spec, "")); }

// The memory of one data rank for keys, values and recurrent states, beside the weights.
double cache_bytes(const GeneratedMemory& m, double of_free) {
  const Bytes used = m.weights + m.working;
  const Bytes room = of_free > 0 ? std::llround(of_free * static_cast<double>(m.capacity - used)) : m.allowed - used;
  if (room < m.a_sequence()) throw Error("the weights leave no memory for a sequence");
  return static_cast<double>(room + 1);  // so that rounding refuses no request that just fits
}

// Returns the sequences whose keys and values have room beside the weights by trtllm-bench's estimate (tune).
double cached_by_estimate(const GeneratedMemory& m) {
  constexpr double kPart = 0.95;
  return kPart * static_cast<double>(m.capacity - m.weights) / static_cast<double>(m.a_sequence());
}

// Plays requests against a stack as its clients would send them. Where a measurement does not say how many requests
// were sent, ten from each client.
ServingFigures under_load(const ServedRow& row, std::int64_t clients, std::int64_t requests) {
  if (clients < 1) throw Error("how many clients or requests there are is not said");
  const std::int64_t data = row.attention_data;
  ServedOptions options = served_options(row);
  const auto spec_of = [&](std::int64_t batch, std::int64_t input, std::int64_t output) {
    ServedRow like = row;
    like.input = input;
    return served_spec(like, batch * data, output);
  };
  const PredictPass predict = {.prompts =
                                   [&](std::int64_t n, std::int64_t input) {
                                     const Spec spec = spec_of(n, input, 1);
                                     return prompt_time(spec, profile_for(spec, ""));
                                   },
                               .decode =
                                   [&](std::int64_t n, std::int64_t cached) {
                                     const Spec spec = spec_of(n, cached, 2);
                                     return decode_period_s(spec, profile_for(spec, ""), cached);
                                   }};
  // Prompts come one after another, so that no pass needs the working memory of many of them.
  const Spec alone = spec_of(1, row.input, row.output);
  GeneratedMemory memory = generation_memory(alone, profile_for(alone, ""));
  if (options.tunes) tune(row, cached_by_estimate(memory), options);
  memory.working += options.sequences * options.sampler_bytes * alone.model.vocab;
  const ServingLoad load = {
      .clients = clients,
      .requests_per_s = row.rate,
      .data_ranks = data,
      .requests = requests > 0 ? requests : 10 * clients,
      .input = row.input,
      .output = row.output,
      .shortest = options.shortest,
      .sequences = options.sequences,
      .cache_bytes = cache_bytes(memory, options.of_free),
      .token_bytes = static_cast<double>(memory.cache_a_sequence) / static_cast<double>(row.input + row.output),
      .state_bytes = static_cast<double>(memory.states_a_sequence),
      .pass_tokens = options.pass_tokens,
      .mixes = options.mixes,
      .reserves = options.reserves,
      .overlaps = options.overlaps,
      .poll_passes = options.poll_passes,
      .stream_passes = options.stream_passes,
      .cuts_prompts = options.cuts_prompts,
      .balance_passes = options.balance_passes,
      .checked_tokens = alone.generation->checked(),
      .tokens_a_pass = alone.generation->tokens_a_pass(),
      .tokenise_s = options.tokenise_s};
  return play(load, pass_times(predict, load));
}

// Returns the number of GPUs whose tokens a second a row gives together: one, or all.
double counted_apart(const ServedRow& row) { return says(row.metric, "per GPU") ? static_cast<double>(row.gpus) : 1; }

double tokens_per_s(const ServedRow& row, const ServingFigures& at) {
  return static_cast<double>(at.tokens) / at.total_s / counted_apart(row);
}

// The output tokens a second of requests that come at a rate follow from that rate while they are answered as fast.
void add_figures_at_a_rate(ServedCase& c) {
  const ServedRow& row = *c.row;
  if (row.requests < 1 || row.output < 2 || !says(row.metric, "output tokens/s"))
    throw Error("requests that come at a rate (qps) need requests, osl and output tokens/s as their metric");
  constexpr double kMilli = 1e3;
  const ServingFigures at = under_load(row, row.requests, row.requests);
  c.figures = {{"tokens/s, at a rate", tokens_per_s(row, at), row.value[0]}};
  if (row.first_token_ms > 0)
    c.figures.push_back({"first token, at a rate", at.first_token_s * kMilli, row.first_token_ms});
  if (row.token_ms > 0) c.figures.push_back({"token, at a rate", at.token_s * kMilli, row.token_ms});
}

// The row with the lengths of the stack's own benchmark where it does not say its own.
ServedRow with_lengths(const ServedRow& row) {
  const ServedOptions options = served_options(row);
  ServedRow said = row;
  if (said.input < 1) said.input = options.benchmark_input;
  if (said.output < 1) said.output = options.benchmark_output;
  if (said.input < 1 || said.output < 1) throw Error("a batch needs isl and osl, the lengths of prompts and answers");
  return said;
}

// Returns how many of a metric's units of time are a second; the unit stands at its end: "latency, ms".
double units_a_second(const std::string& metric) {
  if (metric.ends_with(", ms")) return 1e3;
  if (metric.ends_with(", s")) return 1;
  throw Error(fmt::format("metric '{}' ends in neither ', ms' nor ', s'", metric));
}

// Figures of a batch whose sequences all begin and end together.
void add_figures_of_batch(ServedCase& c) {
  const ServedRow row = with_lengths(*c.row);
  const auto report = [&](std::int64_t output) { return report_of(served_spec(row, row.batch, output)); };
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::any_of(names, [&](std::string_view name) { return row.metric.starts_with(name); });
  };
  const double measured = row.value[0];
  if (is({"first token latency"})) {
    const double seconds = report(1).first_token_s + session_us(stack_of(row)) * kMicrosecond;
    c.figures = {{"first token", seconds * units_a_second(row.metric), measured}};
  } else if (is({"time per output token"})) {
    c.figures = {{"token", report(row.output).token_s * units_a_second(row.metric), measured}};
  } else if (is({"latency", "mean latency"})) {
    c.figures = {{"time, static", report(row.output).total_s * units_a_second(row.metric), measured}};
  } else if (is({"tokens/s", "input tokens/s"}) && row.output == 1) {
    const double tokens = static_cast<double>(row.batch * row.input) / counted_apart(row);
    c.figures = {{"tokens/s, prompts", tokens / report(1).first_token_s, measured}};
  } else if (is({"tokens/s", "output tokens/s"})) {
    c.figures = {{"tokens/s, static", report(row.output).tokens_per_s / counted_apart(row), measured}};
  } else {
    throw Error(fmt::format("metric '{}' of a batch is not built in", row.metric));
  }
}

// Whether the same GPUs process prompts and answer, as far as a row says.
bool is_one_pool(const ServedRow& row) { return !says(row.mode, "apart") && !says(row.mode, "disaggregated"); }

void add_figures(ServedCase& c) {
  const ServedRow& row = *c.row;
  constexpr double kMilli = 1e3;
  if (row.value.empty()) throw Error("no value is given");
  if (row.rate > 0) {
    add_figures_at_a_rate(c);
  } else if (row.batch > 0 && row.concurrency == 0) {
    add_figures_of_batch(c);
  } else if (says(row.mode, "one pool") && row.value.size() == 2) {
    const ServingFigures at = under_load(row, row.concurrency, row.requests);
    c.figures = {{"token, fixed concurrency", at.token_s * kMilli, row.value[1]},
                 {"first token, fixed concurrency", at.first_token_s * kMilli, row.value[0]}};
  } else if (says(row.mode, "offline max throughput") && row.output > 1) {
    // All requests wait from the begin on.
    constexpr std::int64_t kMany = 10'000;
    const std::int64_t requests = row.requests > 0 ? row.requests : kMany;
    const ServingFigures at = under_load(row, requests, requests);
    c.figures = {{"tokens/s, offline", tokens_per_s(row, at), row.value[0]}};
  } else if (row.concurrency > 0 && row.output > 1 && says(row.metric, "output tokens/s") && is_one_pool(row)) {
    const ServingFigures at = under_load(row, row.concurrency, row.requests);
    c.figures = {{"tokens/s, fixed concurrency", tokens_per_s(row, at), row.value[0]}};
  } else {
    throw Error(fmt::format("mode '{}' is not built in", row.mode.substr(0, row.mode.find(','))));
  }
}

}  // namespace

std::vector<ServedRow> read_served(const std::string& path) {
  constexpr std::string_view kAdvice = "a list of measured rows is needed";
  const nlohmann::json root = parse_json(path, read_input(path, kMostTables), kAdvice);
  std::vector<ServedRow> rows;
  for (const JsonValue& item : JsonValue(root, path, std::string(kAdvice)).items()) rows.push_back(row_of(item));
  return rows;
}

ServedCase predict_served(const ServedRow& row) {
  ServedCase c{.row = &row};
  try {
    add_figures(c);
  } catch (const Error& e) {
    const std::string what = e.what();
    c.refused = what.starts_with("row:") ? what.substr(what.find(": ") + 2) : what;
    c.figures.clear();
  }
  return c;
}

}  // namespace orrery
