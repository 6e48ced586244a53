#include "models/load/load_spec.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "models/base/input_file.h"
#include "models/base/names.h"
#include "models/load/aliases.h"
#include "models/load/expert_loads.h"
#include "models/load/open_spec.h"
#include "models/load/reader.h"
#include "models/partition/rank_groups.h"
#include "models/spec/recipes.h"
#include "models/spec/sharding.h"

namespace orrery {
namespace {

constexpr SpecKey kTopKeys[] = {
    {"model", "built-in name, a Hugging Face config.json, or a map", "llama-3.1-70b", "name | path | map", "required"},
    {"sequence", "tokens of a sample, or a map with the documents that samples are packed from, and their images",
     "8192", "whole number | map"},
    {"workload",
     "what the machines do: a training step, text from a trained model, or a training step of a student "
     "beside a teacher or of a policy beside a reference",
     "generate", "train | generate | distill | dpo", "train; another where its section is given"},
    {"generate", "prompts, and the text that follows them", "{batch: 64, input: 2048}", "map", "-"},
    {"teacher", "the model that a student learns from: a name, a config.json, or a map with the keys of `model`",
     "llama-3.1-70b", "name | path | map", "required for distill"},
    {"distill", "the loss of a student beside a teacher", "{temperature: 2}", "map", "-"},
    {"dpo", "the loss of pairs of samples, a chosen one before a rejected one, beside a reference", "{beta: 0.1}",
     "map", "-"},
    {"cluster", "name of a node, or a map", "{node: dgx-h100, nodes: 8}", "name | map", "required"},
    {"gpus", "GPUs in use; the first nodes are filled", "64", "whole number",
     "all of the cluster, or the product of the degrees"},
    {"software", "name of a training stack, or a map", "torchtitan", "name | map", "megatron-core"},
    {"strategy", "how the model is laid out over GPUs", "{tensor: 8, pipeline: 4}"},
    {"steps", "training steps that `orrery run` makes", "5"},
    {"seed", "seed of initial weights, data and stragglers", "1"},
    {"search", "lists of values of strategy keys that `orrery search` chooses from", "{tensor: [1, 2, 4, 8]}",
     "map of lists", "-"},
};

struct ShortForm {
  std::string_view given;
  std::string_view key;
};

// Keys whose value may be a single word instead of a map, each with the key of the map for which the word stands. The
// word is replaced by such a map, so that --set can set other keys of the map.
constexpr ShortForm kShort[] = {{"model", "base"},
                                {"teacher", "base"},
                                {"cluster", "node"},
                                {"software", "profile"},
                                {"sequence", "length"},
                                {"strategy.optimizer", "name"},
                                {"strategy.offload.optimizer", "device"},
                                {"strategy.offload.activations", "device"},
                                {"model.sliding_window", "window"}};

void rename_keys(const SpecReader& reader, SpecNode& root) {
  SpecNode* strategy = root.find("strategy");
  if (strategy == nullptr) return;
  for (std::size_t i = 0; i < strategy->keys.size(); ++i) {
    const std::string key = canonical_key(strategy->keys[i]);
    if (key == strategy->keys[i]) continue;
    if (strategy->find(key) != nullptr) {
      reader.fail(strategy->items[i], "strategy." + strategy->keys[i], fmt::format("{} is given too", key));
    }
    strategy->keys[i] = key;
  }
}

// A value that was given under an alternative name (an alias).
struct Renamed {
  std::string key, given;
};

// Returns the scalar in the parsed spec that gives the value of a key such as "cluster.node", even if the spec gives it
// in the short form `cluster: NAME`; nullptr if the spec does not give the key, or its value is not a single word.
SpecNode* word_at(SpecNode& root, std::string_view key) {
  const std::size_t dot = key.find('.');
  SpecNode* section = root.find(key.substr(0, dot));
  if (section == nullptr) return nullptr;
  const auto is_short = [&](const ShortForm& row) {
    return row.given == key.substr(0, dot) && row.key == key.substr(dot + 1);
  };
  const bool whole = std::any_of(std::begin(kShort), std::end(kShort), is_short);
  SpecNode* node = section->kind == SpecNode::Kind::map ? section->find(key.substr(dot + 1))
                   : whole                              ? section
                                                        : nullptr;
  return node != nullptr && node->kind == SpecNode::Kind::scalar ? node : nullptr;
}

// Sets the precision of generated text to that which a model's name on the Hub says of its weights ("-FP8", "-NVFP4"),
// where the spec says none.
void take_precision_of_name(SpecNode& root, const SpecNode& model) {
  const SpecNode* workload = root.find("workload");
  if (workload == nullptr || workload->text != "generate") return;
  std::string name = model.text;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  const char* const precision = name.ends_with("-fp8") ? "fp8" : name.ends_with("-nvfp4") ? "nvfp4" : nullptr;
  if (precision == nullptr) return;
  const int line = model.line;
  SpecNode& strategy = root.insert("strategy");
  if (strategy.kind == SpecNode::Kind::null) strategy.kind = SpecNode::Kind::map;
  if (strategy.kind != SpecNode::Kind::map) return;
  if (strategy.find("precision") != nullptr || strategy.find("quantise") != nullptr) return;
  SpecNode& node = strategy.insert("precision");
  node.kind = SpecNode::Kind::scalar;
  node.line = line;
  node.text = precision;
}

// Replaces values that are given by an alternative name; returns the replaced values.
std::vector<Renamed> rename_values(SpecNode& root, const std::string& path) {
  std::set<std::string_view> keys;
  for (const AliasRow& row : alias_rows()) keys.insert(row.at);
  keys.erase("strategy");
  std::vector<Renamed> renamed;
  const auto take = [&](std::string_view key, SpecNode& node, std::string name) {
    if (name == node.text) return;
    renamed.push_back({std::string(key), std::exchange(node.text, std::move(name))});
  };
  for (const std::string_view key : keys) {
    if (SpecNode* node = word_at(root, key)) take(key, *node, canonical_value(key, node->text));
  }
  SpecNode* model = word_at(root, "model.base");
  if (model == nullptr || std::filesystem::exists(beside(path, model->text))) return renamed;
  const SpecNode given = *model;
  take("model.base", *model, canonical_model(model->text));
  take_precision_of_name(root, given);
  return renamed;
}

void clear_lines(SpecNode& node) {
  node.line = 0;
  for (SpecNode& item : node.items) clear_lines(item);
}

// Returns the map that holds the last key of a dotted path. On the way it makes maps that are missing, and replaces
// single words by maps.
SpecNode& descend(SpecNode& parent, const std::string& path, std::string_view option) {
  if (parent.kind == SpecNode::Kind::scalar) {
    for (const ShortForm& row : kShort) {
      if (row.given != path) continue;
      SpecNode word = parent;
      parent = SpecNode{SpecNode::Kind::map, word.line, "", {}, {}};
      parent.insert(row.key) = std::move(word);
    }
  }
  if (parent.kind == SpecNode::Kind::scalar || parent.kind == SpecNode::Kind::list) {
    throw Error(fmt::format("--set {}: {} holds a single value or a list, not keys", option, path));
  }
  return parent;
}

void apply_override(SpecNode& root, const std::string& option) {
  const std::size_t equals = option.find('=');
  if (equals == 0 || equals == std::string::npos) throw Error(fmt::format("--set {}: KEY=VALUE is needed", option));
  SpecNode* node = &descend(root, "", option);
  std::string path;
  for (std::size_t start = 0; start <= equals;) {
    const std::size_t dot = std::min(option.find('.', start), equals);
    std::string_view key = std::string_view(option).substr(start, dot - start);
    if (key.empty()) throw Error(fmt::format("--set {}: KEY=VALUE is needed", option));
    const std::string own = path == "strategy" ? canonical_key(key) : std::string(key);
    if (!path.empty()) node = &descend(*node, path, option);
    node = &node->insert(own);
    path += (path.empty() ? "" : ".") + own;
    start = dot + 1;
  }
  if (option.find_first_not_of(" \t", equals + 1) == std::string::npos)
    throw Error(fmt::format("--set {}: a value is needed; null leaves the key out", option));
  *node = parse_tree(option.substr(equals + 1), "--set " + option.substr(0, equals));
  clear_lines(*node);
}

// Sorts the origins of values (each a key, its value, and where the value came from) by section, in the order in which
// a spec is written, whatever order the sections were read in.
void sort_origins(std::vector<Origin>& origins) {
  const auto rank = [](const Origin& origin) {
    const std::string_view top = std::string_view(origin.key).substr(0, origin.key.find('.'));
    return std::ranges::find(kTopKeys, top, &SpecKey::name);
  };
  std::stable_sort(origins.begin(), origins.end(), [&](const Origin& a, const Origin& b) { return rank(a) < rank(b); });
}

}  // namespace

// Sets the model's dropout to the default of the software stack if the spec leaves it out.
static void take_habits(SpecReader& reader, Spec& spec) {
  for (Origin& o : reader.origins) {
    if (o.key != "model.dropout" || o.from != "default" || spec.software.layout.dropout == 0) continue;
    spec.model.dropout = spec.software.layout.dropout;
    o.value = fmt::format("{}", spec.model.dropout);
    o.from = "profile " + spec.software.name;
  }
}

// Reads the section `search`, as in search: {tensor: [1, 2, 4], schedule: 1f1b}; which keys can be searched is checked
// by the search itself.
static std::vector<SearchRange> read_search(const SpecReader& reader, const SpecNode* node) {
  std::vector<SearchRange> ranges;
  if (node == nullptr || node->kind == SpecNode::Kind::null) return ranges;
  if (node->kind != SpecNode::Kind::map)
    reader.fail(*node, "search", "needs keys of the strategy with lists of values");
  for (std::size_t i = 0; i < node->keys.size(); ++i) {
    const SpecNode& item = node->items[i];
    SearchRange range{canonical_key(node->keys[i]), {}, reader.where(item)};
    const bool list = item.kind == SpecNode::Kind::list;
    for (const SpecNode& value : list ? item.items : std::vector<SpecNode>{item}) {
      std::string text = "null";
      if (value.kind != SpecNode::Kind::null) convert(reader, value, "search." + range.key, text);
      range.values.push_back(canonical_value("strategy." + range.key, text));
    }
    ranges.push_back(std::move(range));
  }
  return ranges;
}

// Sets the sharding to none if there is only one rank to shard over, where nothing is transferred in few bits either.
// Specs for a search are not changed, because a search also tries other parallel degrees, for which it needs the
// sharding that was given.
static void settle_sharding(Spec& spec) {
  if (!shards_nothing(spec.strategy, has_experts(spec))) return;
  spec.strategy.sharding = Sharding::none;
  spec.strategy.zero_quantize = {};
  for (Origin& origin : spec.origins) {
    const bool narrow = origin.key.starts_with("strategy.zero_quantize.");
    if ((narrow || origin.key == "strategy.sharding") && origin.value != "none")
      origin.asked = fmt::format("{} over one rank", std::exchange(origin.value, "none"));
  }
}

bool is_given(const Origin& origin) {
  return origin.from == "--set" || (origin.from.find(':') != std::string::npos && !origin.from.starts_with("profile "));
}

static std::string with_line(const Spec& spec, const std::string& path, const Broken& broken) {
  std::string where = path;
  for (const Origin& origin : spec.origins) {
    const std::string& key = origin.key;
    const bool same = key == broken.key || key == "strategy." + broken.key;
    if (is_given(origin) && (same || key == "strategy." + broken.key + ".device")) where = origin.from;
  }
  return fmt::format("{}: {}", where, broken.what);
}

SpecNode overridden_tree(const SpecText& spec, const std::vector<std::string>& overrides) {
  SpecNode root = parse_tree(spec.text, spec.path);
  rename_keys({spec.path, {}}, root);
  for (const std::string& option : overrides) apply_override(root, option);
  return root;
}

static OpenSpec read_spec(const std::string& text, const std::string& path, const std::vector<std::string>& overrides,
                          bool open, SpecKeyBook* book = nullptr) {
  SpecReader reader{path, {}, book};
  SpecNode root = overridden_tree({path, text}, overrides);
  const std::vector<Renamed> renamed = rename_values(root, path);
  const SpecSection top(reader, &root, "", kTopKeys);
  Spec spec;
  spec.name = std::filesystem::path(path).stem().string();
  spec.model = read_model(reader, top.find("model"));
  const SpecNode* sequence = top.find("sequence");
  const bool generates = top.find("generate") != nullptr || top.find("workload") != nullptr;
  if (sequence != nullptr && sequence->kind == SpecNode::Kind::map)
    read_sequence(reader, sequence, spec);
  else if (!top.take("sequence", spec.sequence) && !generates)
    throw Error(fmt::format("{}: sequence: missing; tokens per sample", path));
  read_workload(top, spec);
  if (sequence == nullptr && !spec.generation)
    throw Error(fmt::format("{}: sequence: missing; tokens per sample", path));
  spec.software = read_software(reader, top.find("software"));
  take_habits(reader, spec);
  spec.cluster = read_cluster(reader, top.find("cluster"));
  read_strategy(reader, top.find("strategy"), top.find("gpus"), spec);
  read_own_strategy(top, spec);
  top.take("steps", spec.steps);
  std::int64_t seed = 0;
  if (top.take("seed", seed) && seed < 0) reader.fail(*top.find("seed"), "seed", "must be at least 0");
  spec.seed = static_cast<std::uint64_t>(seed);
  std::vector<SearchRange> search = read_search(reader, top.find("search"));
  spec.origins = std::move(reader.origins);
  for (Origin& origin : spec.origins) {
    for (const Renamed& r : renamed) {
      if (r.key == origin.key) origin.asked = "given as " + r.given;
    }
  }
  settle_generation(spec);
  settle_images(spec);
  settle_second(spec);
  sort_origins(spec.origins);
  if (!open) {
    settle_sharding(spec);
    if (const std::string broken = rule_broken_by(spec, path); !broken.empty()) throw Error(broken);
    Strategy& s = spec.strategy;
    if (!s.schedule_file.empty()) s.schedule_text = read_input(s.schedule_file, kMostTables);
    // For a search, only the number of layers is checked here: the search checks each of its strategies itself.
  } else if (const std::int64_t layers = spec.model.layers; layers > kMostLayers) {
    throw Error(
        with_line(spec, path, broken("model.layers", "model.layers: {} is not between 1 and {}", layers, kMostLayers)));
  }
  for (Model* model : {&spec.model, spec.second ? &spec.second->model : nullptr}) {
    if (model != nullptr && model->moe && !model->moe->loads_file.empty())
      model->moe->loads = std::make_shared<ExpertLoads>(read_expert_loads(*model));
  }
  return {std::move(spec), std::move(search), path, overrides};
}

Spec parse_spec(const std::string& text, const std::string& path, const std::vector<std::string>& overrides) {
  return read_spec(text, path, overrides, false).spec;
}
OpenSpec parse_open_spec(const std::string& text, const std::string& path, const std::vector<std::string>& overrides,
                         SpecKeyBook* book) {
  return read_spec(text, path, overrides, true, book);
}
// Reads a spec's contents from a file, or takes those of a built-in recipe (the spec of a well-known training run), for
// which the path is the name with a suffix, such as "bloom-176b.recipe".
SpecText read_spec_text(const std::string& path) {
  const std::vector<std::string_view> recipes = recipe_names();
  const bool recipe = std::find(recipes.begin(), recipes.end(), path) != recipes.end();
  const bool exists = std::filesystem::exists(path);
  if (!exists && !recipe && path.find_first_of("./") == std::string::npos)
    throw Error(fmt::format("{}: no such file, and {}", path, unknown_name("recipe", path, recipes)));
  if (exists || !recipe) return {path, read_input(path, kMostSettings)};
  return {path + ".recipe", find_recipe(path).spec};
}

OpenSpec load_open_spec(const std::string& given, const std::vector<std::string>& overrides) {
  const SpecText file = read_spec_text(given);
  return parse_open_spec(file.text, file.path, overrides);
}

Spec load_spec(const std::string& given, const std::vector<std::string>& overrides) {
  const SpecText file = read_spec_text(given);
  return parse_spec(file.text, file.path, overrides);
}

std::string rule_broken_by(const Spec& spec, const std::string& path) {
  const Broken broken = first_broken(spec);
  return broken.what.empty() ? "" : with_line(spec, path, broken);
}

// Returns the file and line of a key; if the key was not given, those of any key of the same section that was given.
static std::string given_at(const Spec& spec, std::string_view key) {
  for (std::string_view part = key; !part.empty(); part = part.substr(0, part.rfind('.'))) {
    for (const Origin& origin : spec.origins) {
      if (is_given(origin) && origin.key.starts_with(part)) return origin.from;
    }
    if (part.find('.') == std::string_view::npos) break;
  }
  return "";
}

std::string with_place(const Spec& spec, const std::string& refusal) {
  constexpr std::string_view kSections[] = {"model", "cluster", "strategy", "software", "sequence", "gpus"};
  const std::string key = refusal.substr(0, refusal.find(": "));
  const std::string section = key.substr(0, key.find('.'));
  if (key == "spec") {  // the message is about the spec file as a whole
    const std::string from = given_at(spec, "model");
    return from.empty() ? refusal : from.substr(0, from.rfind(':')) + refusal.substr(key.size());
  }
  if (std::find(std::begin(kSections), std::end(kSections), section) == std::end(kSections)) return refusal;
  const std::string from = given_at(spec, key);
  return from.empty() ? refusal : fmt::format("{}: {}", from, refusal);
}

void check(const Spec& spec) {
  if (const Broken broken = first_broken(spec); !broken.what.empty()) throw Error(broken.what);
}

}  // namespace orrery
