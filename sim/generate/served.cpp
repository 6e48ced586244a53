#include "sim/generate/served.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/base/input_file.h"
#include "models/base/json_value.h"
#include "models/load/aliases.h"
#include "models/load/load_spec.h"
#include "sim/generate/generate.h"
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

ServedRow row_of(const JsonValue& item) {
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
  const JsonValue value = item.at("value");
  row.value = value.is_number() ? std::vector{value.number(0, 1e12)} : value.numbers(0, 1e12);
  return row;
}

// The precision of the matrix products in the words of a spec; "" if specs do not have that precision.
std::string precision_of(const ServedRow& row) {
  const std::string& word =
      row.gemm_precision.empty() || row.gemm_precision == "fp8_block" ? row.precision : row.gemm_precision;
  if (word == "fp4" || word == "nvfp4") return "nvfp4";
  if (word.empty() || word == "bfloat16") return "bf16";
  return word == "fp8" || word == "bf16" || word == "fp16" ? word : "";
}

std::string stack_of(const ServedRow& row) {
  if (row.framework.starts_with("TensorRT") || row.framework.starts_with("trtllm")) return "tensorrt-llm";
  if (row.framework.starts_with("vllm") || row.framework.starts_with("vLLM")) return "vllm";
  if (row.framework.starts_with("sglang") || row.framework.starts_with("SGLang")) return "sglang";
  throw Error(fmt::format("stack {} is not built in", row.framework.substr(0, row.framework.find(' '))));
}

std::string cluster_of(const ServedRow& row) {
  const bool rack = row.gpu.starts_with("gb");
  const std::int64_t a_node = rack ? 4 : 8, nodes = (row.gpus + a_node - 1) / a_node;
  return fmt::format("{{gpu: {}, gpus_per_node: {}, nodes: {}, nics: {}, nic_Gbps: 400{}}}", row.gpu, a_node, nodes,
                     a_node, rack ? ", nvlink_domain: 72" : "");
}

Spec spec_of(const ServedRow& row, std::int64_t batch, std::int64_t output) {
  const std::string precision = precision_of(row), model = canonical_model(row.model);
  if (precision.empty()) throw Error(fmt::format("precision {} is not built in", row.precision));
  const bool narrow = precision == "fp8" && row.framework.starts_with("TensorRT-LLM");
  const std::string cache =
      row.cache_precision == "fp8" || (row.cache_precision.empty() && narrow) ? ", kv_precision: fp8" : "";
  const std::int64_t data = row.attention_data, tensor = std::max<std::int64_t>(1, row.tensor / data);
  const std::string experts =
      row.expert > 0 ? fmt::format(", expert: {}{}", row.expert, data > 1 ? ", expert_tensor: 1" : "") : "";
  const auto text = [&](std::string_view with_experts) {
    return fmt::format(
        "{{model: {}, workload: generate, generate: {{batch: {}, input: {}, output: {}{}}}, cluster: {}, gpus: {}, "
        "software: {}, strategy: {{tensor: {}, pipeline: {}, data: {}, precision: {}{}}}}}",
        model, (batch + data - 1) / data * data, row.input, output, cache, cluster_of(row), row.gpus, stack_of(row),
        tensor, row.pipeline, data, precision, with_experts);
  };
  const Spec plain = parse_spec(text(""), "row");
  return plain.model.moe && !experts.empty() ? parse_spec(text(experts), "row") : plain;
}

GenerationReport report_of(const Spec& spec) { return predict_batch(spec, profile_for(spec, "")); }

bool says(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// token_s: predicted seconds per token with a given number of requests in progress: a decode pass over all of them, and
// the part of the time for prompts that falls on each token, as a request brings one prompt for every `output` tokens;
// prompt_s: predicted seconds of one prompt.
struct UnderWay {
  double token_s = 0, prompt_s = 0;
};
UnderWay under_way(const ServedRow& row, std::int64_t requests) {
  const double own = static_cast<double>(requests) / static_cast<double>(row.attention_data);
  const double prompt = report_of(spec_of(row, row.attention_data, 1)).first_token_s;
  const double pass = report_of(spec_of(row, requests, std::max<std::int64_t>(2, row.output))).token_s;
  return {pass + own / static_cast<double>(row.output) * prompt, prompt};
}

void add_figures(ServedCase& c) {
  const ServedRow& row = *c.row;
  constexpr double kMilli = 1e3;
  const auto gpus = static_cast<double>(row.gpus);
  if (row.mode == "static batch") {
    c.figures = {
        {"tokens/s, static", report_of(spec_of(row, row.batch, row.output)).tokens_per_s / gpus, row.value[0]}};
  } else if (says(row.metric, "first token latency")) {
    c.figures = {{"first token", report_of(spec_of(row, row.batch, 1)).first_token_s * kMilli, row.value[0]}};
  } else if (says(row.metric, "time per output token") && row.batch > 0 && row.input > 0) {
    c.figures = {{"token", report_of(spec_of(row, row.batch, row.output)).token_s * kMilli, row.value[0]}};
  } else if (says(row.mode, "one pool") && row.value.size() == 2) {
    const UnderWay at = under_way(row, row.concurrency);
    c.figures = {{"token, fixed concurrency", at.token_s * kMilli, row.value[1]},
                 {"first token, fixed concurrency", (at.prompt_s + at.token_s / 2) * kMilli, row.value[0]}};
  } else if (says(row.mode, "offline max throughput") && row.output > 1) {
    constexpr std::int64_t kMostRequests = 2048;  // TensorRT-LLM's default max_batch_size
    // Prompts come one after another, so that no pass needs the working memory of all of them.
    const Spec one = spec_of(row, 1, row.output);
    const GeneratedMemory memory = generation_memory(one, profile_for(one, ""));
    const std::int64_t fit = memory.sequences_within(memory.allowed) * one.strategy.data;
    if (fit < 1) throw Error("the weights leave no memory for a sequence");
    const std::int64_t batch = std::min({fit, kMostRequests, row.requests > 0 ? row.requests : kMostRequests});
    c.figures = {{"tokens/s, offline", static_cast<double>(batch) / under_way(row, batch).token_s, row.value[0]}};
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
