#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/load/reference.h"
#include "models/load/tree.h"
#include "models/spec/spec.h"

namespace orrery {

// The state that the readers of all sections of a spec share: the file's name for messages, and the origins of the
// values read so far.
struct SpecReader {
  std::string path;
  std::vector<Origin> origins;
  // collects the maps and types of keys for docs/reference.md; null: nothing is collected
  SpecKeyBook* book = nullptr;

  std::string where(const SpecNode& node) const;  // file and line of a node: "spec.yaml:12" or "--set"
  [[noreturn]] void fail(const SpecNode& node, std::string_view key, std::string_view what) const;
};

// These overloads convert one node of the parsed spec to a value. Each of them throws Error naming the key if the node
// is of another type.
void convert(const SpecReader& reader, const SpecNode& node, const std::string& key, std::int64_t& value);
void convert(const SpecReader& reader, const SpecNode& node, const std::string& key, int& value);
void convert(const SpecReader& reader, const SpecNode& node, const std::string& key, double& value);
void convert(const SpecReader& reader, const SpecNode& node, const std::string& key, bool& value);
void convert(const SpecReader& reader, const SpecNode& node, const std::string& key, std::string& value);
void convert(const SpecReader& reader, const SpecNode& node, const std::string& key, std::vector<std::int64_t>& value);

// These overloads return the name of the type that convert() reads from a value: "whole number".
std::string_view type_of(std::int64_t);
std::string_view type_of(int);
std::string_view type_of(double);
std::string_view type_of(bool);
std::string_view type_of(const std::string&);
std::string_view type_of(const std::vector<std::int64_t>&);

std::string to_text(std::int64_t value);
std::string to_text(int value);
std::string to_text(double value);
std::string to_text(bool value);
std::string to_text(const std::string& value);
std::string to_text(const std::vector<std::int64_t>& value);

// A map of the spec with a fixed set of keys, each with its meaning (reference.h). The constructor throws Error for an
// unknown key and suggests the nearest known one; a null or absent map has no keys. If short_key is given, a scalar in
// place of the map is read as {short_key: scalar}. null values count as absent.
class SpecSection {
 public:
  SpecSection(SpecReader& reader, const SpecNode* node, std::string path, std::span<const SpecKey> known,
              std::string_view short_key = "");

  SpecSection(const SpecSection&) = delete;
  SpecSection& operator=(const SpecSection&) = delete;

  const SpecNode* find(std::string_view key) const;
  // Returns one node of the parsed spec for each word that a key's value has, which is a word or a list of words; none
  // if the map lacks the key. Throws Error if the value is a map.
  std::vector<SpecNode> find_words(std::string_view key) const;
  std::string name(std::string_view key) const;  // full name of a key: "strategy.tensor"; the bare key at the top level
  SpecReader& reader() const { return *reader_; }

  // Reads a key into `value` if the map has it. Records the value for `orrery explain` with its origin: the line of the
  // key, or the text `otherwise` if the map lacks the key. Returns whether the map has the key.
  template <class T>
  bool take(std::string_view key, T& value, std::string_view otherwise = "default") const {
    const SpecNode* node = find(key);
    note_type(key, type_of(value));
    if (node != nullptr) convert(*reader_, *node, name(key), value);
    record(key, to_text(value), node, otherwise);
    return node != nullptr;
  }
  template <class T>
  bool take(std::string_view key, std::optional<T>& value) const {
    const SpecNode* node = find(key);
    note_type(key, type_of(T()));
    if (node != nullptr) convert(*reader_, *node, name(key), value.emplace());
    record(key, value ? to_text(*value) : "null", node, "default");
    return node != nullptr;
  }
  // Reads a count from which other values are computed, so that its range (1 to `most`) must be checked at once.
  void take_count(std::string_view key, std::int64_t& value, std::int64_t most,
                  std::string_view otherwise = "default") const;
  // Reads a word that names a value. parse is a function such as find_sharding, which throws Error for an unknown word;
  // the line is added to its message.
  template <class T, class Parse, class Name>
  bool take_named(std::string_view key, T& value, Parse parse, Name to_name, std::string_view otherwise) const {
    const SpecNode* node = find(key);
    if (node != nullptr) {
      std::string word;
      convert(*reader_, *node, name(key), word);
      value = located(*node, key, [&] { return parse(word); });
    }
    record(key, std::string(to_name(value)), node, otherwise);
    return node != nullptr;
  }
  // Reads a word that must be one of `words`.
  bool take_word(std::string_view key, std::string& value, std::span<const std::string_view> words,
                 std::string_view otherwise = "default") const;

  // Returns the result of a function that throws Errors without file and line, and adds the file and line of the node
  // to their messages.
  template <class Function>
  auto located(const SpecNode& node, std::string_view key, Function function) const {
    try {
      return function();
    } catch (const Error& e) {
      reader_->fail(node, name(key), e.what());
    }
  }
  void record(std::string_view key, std::string value, const SpecNode* node, std::string_view otherwise) const;
  void note_type(std::string_view key, std::string_view type) const;  // records the type of a key for docs/reference.md

 private:
  SpecReader* reader_;
  SpecNode wrapped_;  // the map {short_key: scalar} that stands for a scalar, if the short form was used
  const SpecNode* node_;
  std::string path_;
};

// These functions read strategy.stage_replicas. read_replicas: reads the number of ranks of every stage, and returns
// whether DAPPLE's planner must choose these numbers. plan_replicas: sets the numbers that the planner chooses
// (dapple.h).
bool read_replicas(const SpecSection& section, Strategy& s);
void plan_replicas(const SpecSection& section, Spec& spec);

// These functions read parts of the sections strategy and model. read_optimizer: strategy.optimizer. read_units:
// strategy.no_sync, units and zero_quantize. read_frozen: model.lora and model.frozen.
void read_optimizer(const SpecSection& strategy, Optimizer& o);
void read_units(const SpecSection& strategy, const Spec& spec, Strategy& s);
void read_frozen(const SpecSection& model, Model& m);
void read_checkpoint(const SpecSection& strategy, Strategy& s);  // reads strategy.checkpoint
void read_network(const SpecSection& cluster, Cluster& c);       // reads cluster.network (network.cpp)
// Returns the map of cluster.network with the keys of the built-in network or of the file that it names, where it does
// not give them itself (network_rules.cpp). A name alone stands for {name: NAME}. Throws Error for a file that states
// other nodes, NICs or GPUs of a node than the cluster has.
SpecNode network_with_base(const SpecSection& cluster, const SpecNode& network, const Cluster& c);
// Reads cluster.network.graph (graph.cpp), after the cluster's nodes and NICs.
void read_graph(SpecReader& reader, const SpecNode& node, const Cluster& cluster, FabricGraph& graph);
void read_placement(const SpecSection& network, Network& n);  // reads which nodes a job has (placement.cpp)
// Reads the section `sequence`: a length, or a length and the documents that samples are packed from.
void read_sequence(SpecReader& reader, const SpecNode* node, Spec& spec);
// These functions read model.vision and sequence.images. settle_images() removes the model's vision encoder, and adds a
// remark that says so, if samples have no images.
void read_vision(SpecReader& reader, const SpecNode* node, Model& m, std::string_view otherwise);
void read_images(const SpecSection& sequence, Spec& spec);
void settle_images(Spec& spec);
// Reads the section `workload` and those that go with one of its values. settle_generation() sets the values that
// follow from these sections once the strategy is read.
void read_workload(const SpecSection& top, Spec& spec);
void settle_generation(Spec& spec);
// Reads the sections of a workload with a second model: `teacher` and `distill`, or `dpo`. settle_second() sets the
// values that follow from these sections once the strategy is read.
void read_second(const SpecSection& top, std::string_view workload, Spec& spec);
void settle_second(Spec& spec);
// Reads distill.strategy or dpo.strategy, if the second model has GPUs of its own; the strategy must already be read.
void read_own_strategy(const SpecSection& top, Spec& spec);

// These functions read the sections of a spec; load_spec.cpp calls them.
Model read_model(SpecReader& reader, const SpecNode* node);
Cluster read_cluster(SpecReader& reader, const SpecNode* node);
Software read_software(SpecReader& reader, const SpecNode* node);
void read_offload(const SpecSection& strategy, Offload& o);
// Reads strategy.precision, quantise and gradient_precision; the workload must already be read.
void read_precision(const SpecSection& strategy, const Spec& spec, Strategy& s);
// Fills spec.strategy and spec.gpus; spec.model, spec.cluster and spec.software must already be filled.
void read_strategy(SpecReader& reader, const SpecNode* node, const SpecNode* gpus, Spec& spec);

// The greatest number of ranks: above any cluster; products of two such numbers stay below 2^63.
inline constexpr std::int64_t kMostRanks = 10'000'000;

// Returns the path of a file named in a spec; a relative name is taken relative to the spec's own folder.
std::string beside(const std::string& spec_path, const std::string& file);

// A rule of check() that a spec breaks: the key that the rule is about, and the error message. Both are empty if the
// spec breaks no rule.
struct Broken {
  std::string key;
  std::string what;
};
template <class... Values>
Broken broken(std::string key, fmt::format_string<Values...> format, Values&&... values) {
  return {std::move(key), fmt::format(format, std::forward<Values>(values)...)};
}
Broken first_broken(const Spec& spec);
Broken offload_rules(const Spec& spec);       // checks the rules of strategy.offload
Broken schedule_rules(const Spec& spec);      // checks the rules of schedules' options
Broken replica_rules(const Spec& spec);       // checks the rules of stage_replicas (replicas.cpp)
Broken grid_rules(const Spec& spec);          // checks the rules of grids of tensor ranks (grid.cpp)
Broken unit_rules(const Spec& spec);          // checks the rules of strategy.units (units.cpp)
Broken frozen_rules(const Spec& spec);        // checks the rules of frozen weights (frozen.cpp)
Broken document_rules(const Spec& spec);      // checks the rules of packed samples (documents.cpp)
Broken image_rules(const Spec& spec);         // checks the rules of images and their encoder (vision.cpp)
Broken checkpoint_rules(const Spec& spec);    // checks the rules of strategy.checkpoint (checkpoint.cpp)
Broken network_rules(const Spec& spec);       // checks the rules of cluster.network (network.cpp)
Broken generation_rules(const Spec& spec);    // checks the rules of text generation (generation.cpp)
Broken quantise_rules(const Spec& spec);      // checks the rules of strategy.quantise (quantise.cpp)
Broken second_rules(const Spec& spec);        // checks the rules of a second model (second_model.cpp)
Broken own_strategy_rules(const Spec& spec);  // checks the rules of distill.strategy and dpo.strategy
Broken feature_rules(const Spec& spec);       // checks the rules of distill.features (second_model.cpp)
Broken rank_order_rules(const Spec& spec);    // checks the rules of strategy.rank_order

}  // namespace orrery
