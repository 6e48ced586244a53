#include "sim/launch/launch_keys.h"

#include <algorithm>

#include <fmt/format.h>

#include "models/families/hugging_face.h"
#include "sim/launch/graph_scope.h"

namespace orrery {
namespace {

using Remarks = std::vector<std::string>;

// Number of ranks of one replica of the model. The result is at most 1e9, because the product of unchecked numbers from
// a file could overflow.
std::int64_t ranks_of_replica(const SpecValues& v) {
  double product_text = 1;
  for (const char* key : {"strategy.tensor", "strategy.pipeline", "strategy.context"})
    product_text *= static_cast<double>(std::max<std::int64_t>(1, v.number_or(key, 1)));
  return product_text < 1e9 ? static_cast<std::int64_t>(product_text) : 1'000'000'000;
}

// Number of data-parallel ranks: the stated number, or the number of GPUs divided by the ranks of a replica; 0: not
// known.
std::int64_t data_of(const SpecValues& v) {
  if (const auto data = v.number("strategy.data")) return *data;
  const std::int64_t gpus = v.number_or("gpus", 0);
  return gpus > 0 && gpus % ranks_of_replica(v) == 0 ? gpus / ranks_of_replica(v) : 0;
}

std::string product_text(std::int64_t a, std::int64_t b, std::int64_t c = 1) {
  std::int64_t result = 0;
  const bool fits = !__builtin_mul_overflow(a, b, &result) && !__builtin_mul_overflow(result, c, &result);
  return fits ? fmt::format("{}", result) : "";
}

void resolve_gpus(SpecValues& v, Remarks& remarks) {
  const SpecValue nodes = v.take("launch.nodes"), each = v.take("launch.gpus_per_node");
  const SpecValue cluster = v.take("launch.cluster_gpus");
  v.take("launch.machines");
  const SpecValues parts{{nodes, each, cluster}};
  if (!each.key.empty()) {
    const std::int64_t count = parts.number_or("launch.nodes", 1), gpus = parts.number_or("launch.gpus_per_node", 0);
    const std::string total = product_text(count, gpus);
    if (total.empty() || gpus < 1)
      return remarks.push_back(fmt::format("{}: {} is no number of GPUs", each.from, each.value));
    v.fill("gpus", total, Said::derived, fmt::format("{}: {} of each of {} nodes", each.from, gpus, count));
  } else if (!nodes.key.empty() && cluster.key.empty()) {
    // Keeps the number of nodes, which is useless without the number of GPUs per node, so that resolve_batch() reports
    // that the number of GPUs per node is missing.
    v.set("launch.nodes", nodes.value, nodes.said, nodes.from);
  }
  if (cluster.key.empty()) return;
  if (v.find("strategy.data") == nullptr) v.fill("gpus", cluster.value, Said::derived, "--on: the whole cluster");
  if (v.number_or("gpus", 0) > parts.number_or("launch.cluster_gpus", 0))
    remarks.push_back(
        fmt::format("{}: {} GPUs are more than the {} of --on", v.find("gpus")->from, v.text("gpus"), cluster.value));
}

void resolve_shards(SpecValues& v) {
  const SpecValue replicate = v.take("launch.replicate"), shard = v.take("launch.shard");
  if (shard.key.empty() && replicate.key.empty()) return;
  const SpecValues parts{{replicate, shard}};
  const std::int64_t copies = parts.number_or("launch.replicate", 1), shards = parts.number_or("launch.shard", 1);
  const std::string from = shard.key.empty() ? replicate.from : shard.from;
  const bool sharded = shards != 1 || v.number_or("strategy.context", 1) > 1;
  const bool hybrid = copies > 1 && shards != 1;
  v.fill("strategy.sharding", !sharded ? "none" : hybrid ? "hsdp" : "fsdp", Said::stated, from);
  if (hybrid && v.text("strategy.sharding") == "fsdp") v.set("strategy.sharding", "hsdp", Said::stated, from);
  if (shards < 1) return;  // -1 shards stands for all data-parallel ranks
  v.fill("strategy.data", product_text(copies, shards), Said::stated,
         fmt::format("{}: {} replicas x {} shards", from, copies, shards));
  if (hybrid) v.fill("strategy.shard_group", fmt::format("{}", shards), Said::stated, from);
}

// Translates torchtitan's local batch, which is the number of sequences of one data-parallel rank in a step; a pipeline
// cuts it into micro-batches.
void resolve_local_batch(SpecValues& v) {
  const SpecValue local = v.take("launch.local_batch"), micro = v.take("launch.pipeline_micro_batch");
  if (local.key.empty()) return;
  const bool pipelined = v.number_or("strategy.pipeline", 1) > 1;
  if (!pipelined)
    v.fill("strategy.micro_batch", local.value, Said::stated, local.from);
  else if (!micro.key.empty())
    v.fill("strategy.micro_batch", micro.value, Said::stated, micro.from);
  else
    v.fill("strategy.micro_batch", "1", Said::assumed, "torchtitan's default of pipeline_parallel_microbatch_size");
  if (const std::int64_t data = data_of(v); data > 0)
    v.fill("strategy.global_batch", product_text(SpecValues{{local}}.number_or("launch.local_batch", 1), data),
           Said::derived, fmt::format("{} x {} data ranks", local.from, data));
}

void resolve_accumulation(SpecValues& v, Remarks& remarks) {
  const SpecValue steps = v.take("launch.accumulation");
  if (steps.key.empty()) return;
  const std::int64_t n = SpecValues{{steps}}.number_or("launch.accumulation", 0),
                     micro = v.number_or("strategy.micro_batch", 0);
  const std::int64_t data = data_of(v), global = v.number_or("strategy.global_batch", 0);
  const std::string from = fmt::format("{}: micro-batch x data ranks x {} accumulated", steps.from, n);
  if (n > 0 && micro > 0 && data > 0) {
    const std::string whole = product_text(micro, data, n);
    v.fill("strategy.global_batch", whole, Said::derived, from);
    if (v.text("strategy.global_batch") != whole)
      remarks.push_back(fmt::format("{}: {} accumulated micro-batches of {} on {} data ranks are {} sequences, not {}",
                                    steps.from, n, micro, data, whole, v.text("strategy.global_batch")));
  } else if (n > 0 && micro > 0 && global > 0 && global / n % micro == 0 && global % n == 0) {
    const std::int64_t ranks = global / n / micro;
    v.fill(
        "gpus", product_text(ranks, ranks_of_replica(v)), Said::derived,
        fmt::format("{}: global batch / (micro-batch x {} accumulated) x tensor x pipeline x context", steps.from, n));
  } else {
    remarks.push_back(
        fmt::format("{}: {} accumulated micro-batches: cannot be used, as micro-batch or data ranks are not stated",
                    steps.from, steps.value));
  }
}

// Number of layers of the model: the stated number, or that of the built-in model with the stated name.
std::int64_t layers_of(const SpecValues& v) {
  const SpecValue* name = v.find("model");
  return name == nullptr ? v.number_or("model.layers", 0) : find_model(name->value).layers;
}

void resolve_stages(SpecValues& v, Remarks& remarks) {
  const SpecValue each = v.take("launch.layers_per_virtual_stage");
  const std::int64_t layers = layers_of(v), stage = SpecValues{{each}}.number_or("launch.layers_per_virtual_stage", 0);
  const std::int64_t pipeline = v.number_or("strategy.pipeline", 1);
  if (each.key.empty()) return;
  const std::int64_t parts =
      stage > 0 && stage < 1'000'000 && pipeline > 0 && pipeline < 1'000'000 ? stage * pipeline : 0;
  if (parts == 0 || layers == 0 || layers % parts != 0)
    return remarks.push_back(
        fmt::format("{}: {} layers of a virtual stage: needs a whole number of such stages in {} layers and {} stages",
                    each.from, each.value, layers, pipeline));
  v.fill("strategy.virtual_stages", fmt::format("{}", layers / parts), Said::derived,
         fmt::format("{}: {} layers / ({} stages x {} layers)", each.from, layers, pipeline, stage));
}

// Megatron-LM's names of recomputed modules, and the names of these modules in a spec.
constexpr OptionWord kModules[] = {
    {"core_attn", "attention"},    {"layernorm", "norm"}, {"mlp", "mlp"},
    {"moe_act", "moe_activation"}, {"moe", "moe"},        {"mla_up_proj", "mla_up_proj"}};

void resolve_recompute(SpecValues& v, Remarks& remarks) {
  const SpecValue method = v.take("launch.recompute_method"), layers = v.take("launch.recompute_num_layers"),
                  modules = v.take("launch.recompute_modules");
  const std::string how = v.text("strategy.recompute");
  if (how == "full" && !layers.key.empty()) {
    if (method.value == "block")
      v.fill("strategy.recompute_layers", layers.value, Said::stated, layers.from);
    else if (layers.value != "1")
      remarks.push_back(fmt::format("{}: recomputing {} layers at once is not modelled; taken as one by one",
                                    layers.from, layers.value));
  }
  if (how != "selective" || modules.key.empty()) return;
  std::string parts, word;
  for (const char c : modules.value + " ") {
    if (c != ' ' && c != ',') {
      word += c;
      continue;
    }
    const auto* found = std::ranges::find(kModules, std::string_view(word), &OptionWord::theirs);
    if (found != std::end(kModules))
      parts += (parts.empty() ? "" : ", ") + std::string(found->ours);
    else if (!word.empty())
      remarks.push_back(fmt::format("{}: module {} is not modelled: not recomputed", modules.from, word));
    word.clear();
  }
  if (!parts.empty() && parts != "attention")
    v.set("strategy.recompute", "[" + parts + "]", Said::stated, modules.from);
}

// Translates the option that says which layers have experts: "([0]*3+[1]*58)" means that the first three layers have
// none and the next 58 have, "2" that every second layer has.
void resolve_experts(SpecValues& v, bool shapes, Remarks& remarks) {
  const SpecValue freq = v.take("launch.moe_layer_freq");
  if (!freq.key.empty()) {
    const std::string& text = freq.value;
    const std::size_t star = text.find("[0]*"), plus = text.find("+[1]*");
    const bool plain = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    if (plain)
      v.set("model.moe.every", text, Said::stated, freq.from);
    else if (star != std::string::npos && plus != std::string::npos && plus > star + 4)
      v.set("model.moe.first_layer", text.substr(star + 4, plus - star - 4), Said::stated, freq.from);
    else
      remarks.push_back(fmt::format(
          "{}: {}: layers with experts in this order are not translated; set model.moe.first_layer and every",
          freq.from, text));
  }
  if (!shapes || v.find("model.moe.experts") == nullptr) return;
  v.fill("model.moe.top_k", "2", Said::assumed, "Megatron-LM's default");
  if (v.find("model.feed_forward") != nullptr)
    v.fill("model.moe.feed_forward", v.text("model.feed_forward"), Said::assumed,
           "Megatron-LM's default: ffn_hidden_size");
}

// Sets the width of an MLP where a Megatron-LM file gives none: 4 x the hidden size or, for a gated MLP, two thirds of
// that, rounded down to a multiple of 64.
void resolve_shapes(SpecValues& v, bool shapes) {
  const SpecValue positions = v.take("launch.max_positions");
  if (!positions.key.empty() && v.text("model.positions") == "learned")
    v.fill("model.max_positions", positions.value, Said::stated, positions.from);
  const std::int64_t hidden = v.number_or("model.hidden", 0);
  if (!shapes || hidden <= 0 || hidden > 1'000'000'000) return;
  const bool gated = v.text("model.gated") == "true";
  const std::int64_t width = gated ? 4 * hidden * 2 / 3 / 64 * 64 : 4 * hidden;
  v.fill("model.feed_forward", fmt::format("{}", width), Said::derived,
         gated ? "Megatron-LM: two thirds of 4 x hidden" : "Megatron-LM: 4 x hidden");
}

// torchtitan's names (name, flavor) of models that Orrery has built in, and Orrery's names of these models.
struct ModelFlavor {
  std::string_view name, flavor, model;
};
constexpr ModelFlavor kFlavors[] = {{"llama3", "8B", "llama-3.1-8b"},
                                    {"llama3", "70B", "llama-3.1-70b"},
                                    {"llama3", "405B", "llama-3.1-405b"},
                                    {"llama2", "7B", "llama-2-7b"},
                                    {"llama2", "13B", "llama-2-13b"},
                                    {"llama2", "70B", "llama-2-70b"},
                                    {"deepseek_v3", "671B", "deepseek-v3"},
                                    {"deepseek_v3", "16B", "deepseek-v2-lite"},
                                    {"qwen3", "0.6B", "qwen3-0.6b"},
                                    {"qwen3", "1.7B", "qwen3-1.7b"},
                                    {"qwen3", "4B", "qwen3-4b"},
                                    {"qwen3", "8B", "qwen3-8b"},
                                    {"qwen3", "14B", "qwen3-14b"},
                                    {"qwen3", "32B", "qwen3-32b"}};

void resolve_model(SpecValues& v, Remarks& remarks) {
  const SpecValue name = v.take("launch.model_name"), flavor = v.take("launch.model_flavor");
  v.take("launch.compile");
  for (const char* key : {"launch.offloaded_layers", "launch.grouped", "launch.latent"}) v.take(key);
  if (flavor.key.empty()) return;
  for (const ModelFlavor& f : kFlavors) {
    if (f.name == name.value && f.flavor == flavor.value)
      return v.fill("model", std::string(f.model), Said::stated, flavor.from);
  }
  remarks.push_back(
      fmt::format("{}: model {} {} is not built in; give its shapes under model, or a config.json beside this file",
                  flavor.from, name.value, flavor.value));
}

void resolve_batch(SpecValues& v, Remarks& remarks) {
  const SpecValue schedule = v.take("launch.batch_schedule"), nodes = v.take("launch.nodes");
  if (!nodes.key.empty() && v.find("gpus") == nullptr)
    remarks.push_back(
        fmt::format("{}: {} nodes, but the file does not state how many GPUs a node has; add gpus, or --on", nodes.from,
                    nodes.value));
  if (!schedule.key.empty())
    remarks.push_back(fmt::format("{}: the batch grows during training ({}); {}", schedule.from, schedule.value,
                                  v.find("strategy.global_batch") == nullptr
                                      ? "set strategy.global_batch to that of the steps in question"
                                      : "the spec has the global batch that is stated"));
  const std::int64_t gpus = v.number_or("gpus", 0), data = data_of(v), micro = v.number_or("strategy.micro_batch", 0),
                     global = v.number_or("strategy.global_batch", 0);
  if (gpus > 0 && gpus % ranks_of_replica(v) != 0)
    remarks.push_back(
        fmt::format("{}: {} GPUs cannot hold tensor {} x pipeline {} x context {} = {}; at least {} are needed, in "
                    "multiples of that",
                    v.find("gpus")->from, gpus, v.number_or("strategy.tensor", 1), v.number_or("strategy.pipeline", 1),
                    v.number_or("strategy.context", 1), ranks_of_replica(v), ranks_of_replica(v)));
  const double samples = static_cast<double>(data) * static_cast<double>(micro);
  if (data > 0 && micro > 0 && global > 0 && (samples > static_cast<double>(global) || global % (data * micro) != 0))
    remarks.push_back(fmt::format("{}: a global batch of {} is no multiple of {} data ranks x micro-batch {}",
                                  v.find("strategy.global_batch")->from, global, data, micro));
}

// Adds the number of FSDP shards and of replicas, for frameworks whose options express the sharding by these two
// numbers.
template <class Add>
void add_shards(SpecValues& v, std::int64_t data, const Add& add) {
  const std::string sharding = v.text("strategy.sharding");
  const bool whole = sharding == "none" && v.number_or("strategy.context", 1) == 1, hybrid = sharding == "hsdp";
  const std::int64_t group = hybrid ? v.number_or("strategy.shard_group", 0) : whole ? 1 : data;
  const bool split = group > 1 && group < data && data % group == 0;
  // No framework has an option for shard groups of unequal size. The value set here is in no framework's table, so that
  // the export reports the key as one that it cannot express.
  if (hybrid && !split) v.set("strategy.sharding", "hsdp of uneven groups", Said::stated, "");
  if (data < 1 || group < 1 || data % group != 0 || (hybrid && !split) ||
      !(whole || sharding.find("sd") != std::string::npos))
    return;
  add("launch.shard", fmt::format("{}", group));
  add("launch.replicate", fmt::format("{}", data / group));
}

// Adds the numbers of nodes, of GPUs per node and of micro-batches, as launchers and frameworks count them.
template <class Add>
void add_counts(SpecValues& v, const Add& add) {
  const std::int64_t gpus = v.number_or("gpus", 0), each = v.number_or("cluster.gpus_per_node", 8);
  const bool whole = each > 0 && gpus % each == 0;
  if (gpus > 0) add("launch.nodes", fmt::format("{}", whole ? gpus / each : 1));
  if (gpus > 0) add("launch.gpus_per_node", fmt::format("{}", whole ? each : gpus));
  const std::int64_t data = data_of(v), micro = v.number_or("strategy.micro_batch", 0);
  const std::int64_t global = v.number_or("strategy.global_batch", 0);
  const bool batch = data > 0 && micro > 0 && global > 0 && global % data == 0 && global / data % micro == 0;
  const bool pipelined = v.number_or("strategy.pipeline", 1) > 1;
  if (batch) add("launch.accumulation", fmt::format("{}", global / data / micro));
  if (pipelined && batch) add("launch.local_batch", fmt::format("{}", global / data));
  if (pipelined && batch) add("launch.pipeline_micro_batch", fmt::format("{}", micro));
  if (!pipelined && micro > 0) add("launch.local_batch", fmt::format("{}", micro));
  add_shards(v, data, add);
}

// Adds the options that frameworks need for a model besides the model's sizes.
template <class Add>
void add_model(SpecValues& v, const Add& add) {
  const std::int64_t layers = v.number_or("model.layers", 0), heads = v.number_or("model.heads", 0);
  const std::int64_t first = v.number_or("model.moe.first_layer", 0), every = v.number_or("model.moe.every", 1);
  if (v.text("model.mtp_layers") == "0") v.take("model.mtp_layers");
  if (v.number_or("model.kv_heads", heads) != heads) add("launch.grouped", "true");
  if (v.find("model.mla.kv_lora_rank") != nullptr) add("launch.latent", "true");
  if (v.find("model.moe.experts") != nullptr && first > 0 && every == 1 && layers > first)
    add("launch.moe_layer_freq", fmt::format("([0]*{}+[1]*{})", first, layers - first));
  if (v.find("model.moe.experts") != nullptr && first == 0) add("launch.moe_layer_freq", v.text("model.moe.every"));
  const bool table = v.number_or("model.max_positions", 0) > 0;
  add("launch.max_positions", v.text(table ? "model.max_positions" : "sequence"));
  for (const ModelFlavor& f : kFlavors) {
    if (f.model != v.text("model")) continue;
    add("launch.model_name", std::string(f.name));
    add("launch.model_flavor", std::string(f.flavor));
    return;
  }
}

// Translates a spec's names of recomputed parts of a layer to Megatron-LM's module names.
template <class Add>
void add_recompute(SpecValues& v, const Add& add) {
  if (v.find("strategy.recompute_layers") != nullptr && v.text("strategy.recompute") == "full") {
    add("launch.recompute_method", "block");
    add("launch.recompute_num_layers", v.text("strategy.recompute_layers"));
  }
  const std::string list = v.text("strategy.recompute");
  std::string modules, word;
  for (const char c : list.starts_with("[") ? list.substr(1) : "") {
    if (c != ',' && c != ' ' && c != ']') {
      word += c;
      continue;
    }
    const auto* found = std::ranges::find(kModules, std::string_view(word), &OptionWord::ours);
    if (found == std::end(kModules) && !word.empty()) return;
    if (!word.empty()) modules += (modules.empty() ? "" : " ") + std::string(found->theirs);
    word.clear();
  }
  if (!modules.empty() && add("launch.recompute_modules", modules))
    v.set("strategy.recompute", "selective", Said::derived, "");
}

}  // namespace

void resolve_launch_keys(SpecValues& values, bool shapes, Remarks& remarks) {
  resolve_model(values, remarks);
  resolve_shapes(values, shapes);
  resolve_experts(values, shapes, remarks);
  resolve_stages(values, remarks);
  resolve_gpus(values, remarks);
  resolve_shards(values);
  resolve_local_batch(values);
  resolve_accumulation(values, remarks);
  resolve_recompute(values, remarks);
  resolve_graphs(values, remarks);
  resolve_batch(values, remarks);
}

void add_launch_keys(SpecValues& v, const Framework& framework) {
  const std::vector<OptionRow> rows = framework.rows();
  const auto asks = [&](std::string_view key) {
    return std::ranges::any_of(rows, [&](const OptionRow& r) { return r.key == key && !r.older; });
  };
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!asks(key) || value.empty()) return false;
    v.set(key, value, Said::derived, "");
    return true;
  };
  add_counts(v, add);
  add_model(v, add);
  add_recompute(v, add);
  constexpr std::int64_t kMost = 1'000'000;
  const std::int64_t layers = v.number_or("model.layers", 0), chunks = v.number_or("strategy.virtual_stages", 1);
  const std::int64_t stages = std::min(v.number_or("strategy.pipeline", 1), kMost) * std::min(chunks, kMost);
  // Leaves out the number of virtual stages if it is 1, because some frameworks interleave stages as soon as the option
  // is given.
  if (chunks == 1) v.take("strategy.virtual_stages");
  // No clamp is no option: frameworks refuse a bound of 0, or clamp to it.
  if (v.text("model.activation_clamp") == "0") v.take("model.activation_clamp");
  if (stages > 0 && layers % stages == 0 && chunks > 1 && !asks("strategy.virtual_stages"))
    add("launch.layers_per_virtual_stage", fmt::format("{}", layers / stages));
}

}  // namespace orrery
