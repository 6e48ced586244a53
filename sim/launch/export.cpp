#include "sim/launch/export.h"

#include <algorithm>
#include <map>

#include "models/load/load_spec.h"
#include "models/load/open_spec.h"
#include "sim/launch/launch_keys.h"

namespace orrery {
namespace {

// Endings of keys for which a spec has a short form: "software: NAME" stands for "software: {profile: NAME}".
constexpr std::string_view kWordEnds[] = {".base", ".profile", ".device", ".window", ".length"};

std::string word_key(const std::string& key) {
  if (key == "strategy.optimizer.name") return "strategy.optimizer";
  for (const std::string_view end : kWordEnds) {
    if (key.ends_with(end)) return key.substr(0, key.size() - end.size());
  }
  return key;
}

const OptionWord* word_of(const OptionRow& row, const std::string& ours) {
  const auto found = std::ranges::find(row.words, std::string_view(ours), &OptionWord::ours);
  return found == row.words.end() ? nullptr : &*found;
}

// The default values of a model's keys, which are those in a spec that gives only the model's sizes.
const std::map<std::string, std::string>& plain_model() {
  static const std::map<std::string, std::string> values = [] {
    const Spec spec = parse_spec(
        "{model: {name: plain, layers: 1, hidden: 8, heads: 1, feed_forward: 8, vocab: 8, moe: {experts: 1, top_k: 1, "
        "feed_forward: 8}}, sequence: 1, cluster: {node: dgx-h100}, strategy: {global_batch: 8}}",
        "a plain model");
    std::map<std::string, std::string> result;
    for (const Origin& o : spec.origins) result.emplace(o.key, o.value);
    return result;
  }();
  return values;
}

// Whether a framework must be told a value of a built-in model or configuration file, because the value differs from
// the default.
bool matters(const Origin& o) {
  const auto plain = plain_model().find(o.key);
  return o.key.starts_with("model.") && (plain == plain_model().end() || plain->second != o.value);
}

// The name of a key of the model in the list of what the framework has no option for: its component ("model.indexer"
// for "model.indexer.top_k") if the launch file states no key of that component, else the key itself.
std::string unsaid_part(const std::string& key, const std::vector<std::string>& said) {
  const std::size_t dot = key.find('.', std::string_view("model.").size());
  const std::string part = key.substr(0, dot);
  const auto within = [&](const std::string& other) { return other.starts_with(part + "."); };
  return dot == std::string::npos || std::ranges::any_of(said, within) ? key : part;
}

}  // namespace

SpecValues values_of(const Spec& spec) {
  SpecValues values;
  for (const Origin& o : spec.origins) {
    if (o.value.empty() || o.value == "null" || o.key == "model.name") continue;
    const bool parts =
        o.key == "strategy.recompute" && o.value != "full" && o.value != "selective" && o.value != "none";
    const Said said = is_given(o) ? Said::stated : matters(o) ? Said::derived : Said::assumed;
    values.set(word_key(o.key), parts ? "[" + o.value + "]" : o.value, said, o.from);
  }
  return values;
}

Exported export_options(SpecValues values, const Framework& framework) {
  values.set("software", std::string(framework.software), Said::assumed, "");
  add_launch_keys(values, framework);
  Exported out;
  std::vector<std::string> said;
  for (const OptionRow& row : framework.rows()) {
    const SpecValue* v = row.older || row.key.empty() ? nullptr : values.find(row.key);
    if (v == nullptr || v->said == Said::missing) continue;
    const OptionWord* word = word_of(row, v->value);
    if (!row.words.empty() && word == nullptr) continue;
    const std::string theirs = row.words.empty() ? v->value : std::string(word->theirs);
    const auto same = std::ranges::find(out.options, std::string(row.option), &Setting::name);
    if (same != out.options.end() && same->value != theirs) continue;
    said.push_back(v->key);
    if (same == out.options.end()) out.options.push_back({std::string(row.option), theirs, "", theirs == "null"});
  }
  const auto has = [&](const char* key) { return std::ranges::find(said, key) != said.end(); };
  std::vector<std::string> implied = {"gpus", "software"};
  if (has("launch.accumulation") || has("launch.local_batch"))
    implied.insert(implied.end(), {"strategy.micro_batch", "strategy.global_batch"});
  if (has("launch.shard"))
    implied.insert(implied.end(), {"strategy.sharding", "strategy.data", "strategy.shard_group"});
  if (has("launch.nodes") || has("gpus")) implied.emplace_back("strategy.data");
  if (has("launch.moe_layer_freq")) implied.insert(implied.end(), {"model.moe.first_layer", "model.moe.every"});
  if (has("launch.layers_per_virtual_stage")) implied.emplace_back("strategy.virtual_stages");
  if (has("launch.max_positions")) implied.emplace_back("model.max_positions");
  if (has("launch.model_flavor") || has("model.layers")) implied.emplace_back("model");
  for (const SpecValue& v : values.all) {
    const bool other = v.said != Said::stated || v.key.starts_with("cluster") || v.key.starts_with("launch.");
    if (!other && !has(v.key.c_str()) && std::ranges::find(implied, v.key) == implied.end())
      out.unsaid.push_back(v.key);
  }
  if (!has("model.layers")) return out;  // the model is defined in code, which the launch file does not describe
  // A framework without an option for the head dimension divides the hidden size by the number of heads. The key is not
  // reported as missing if that is its value, or with latent attention, which has keys of its own for dimensions.
  const std::int64_t heads = values.number_or("model.heads", 1);
  const bool divided = values.number_or("model.head_dim", 0) * heads == values.number_or("model.hidden", 0);
  if (divided || values.find("model.mla.kv_lora_rank") != nullptr) implied.emplace_back("model.head_dim");
  const auto names_part = [&](const std::string& part) {
    return std::ranges::any_of(out.unsaid, [&](const std::string& key) { return key.starts_with(part + "."); });
  };
  for (const SpecValue& v : values.all) {
    if (v.said != Said::derived || !v.key.starts_with("model.") || has(v.key.c_str())) continue;
    if (std::ranges::find(implied, v.key) != implied.end()) continue;
    const std::string part = unsaid_part(v.key, said);
    if (std::ranges::find(out.unsaid, part) == out.unsaid.end() && !names_part(part)) out.unsaid.push_back(part);
  }
  return out;
}

}  // namespace orrery
