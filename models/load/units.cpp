// This file reads strategy.no_sync, units and zero_quantize: when gradients are reduced, which weights are gathered and
// reduced together, and the number of bits in which ZeRO++ transfers them.
#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include "models/load/reader.h"
#include "models/spec/gradients.h"

namespace orrery {
namespace {

constexpr SpecKey kQuantizeKeys[] = {
    {"weights", "weights that forward gathers", "int8", "int8 | none", "none"},
    {"gradients", "gradients, reduced by all-to-alls in the node and between nodes", "int4", "int4 | int8 | none",
     "none"},
    {"secondary_shards", "node: every node holds all weights, and backward gathers them there", "node", "node | none",
     "none"},
};
constexpr std::string_view kWeightBits[] = {"none", "int8"};
constexpr std::string_view kGradientBits[] = {"none", "int4", "int8"};
constexpr std::string_view kShardPlaces[] = {"none", "node"};

std::int64_t bits_of(std::string_view word) { return word == "int8" ? 8 : word == "int4" ? 4 : 0; }

void read_quantize(const SpecSection& section, ZeroQuantize& q) {
  const SpecSection map(section.reader(), section.find("zero_quantize"), "strategy.zero_quantize", kQuantizeKeys);
  std::string weights = "none", gradients = "none", secondary = "none";
  map.take_word("weights", weights, kWeightBits);
  map.take_word("gradients", gradients, kGradientBits);
  map.take_word("secondary_shards", secondary, kShardPlaces);
  q = {bits_of(weights), bits_of(gradients), secondary == "node"};
}

std::vector<std::vector<std::int64_t>> lists_of(const SpecReader& reader, const SpecNode& node) {
  std::vector<std::vector<std::int64_t>> lists;
  for (const SpecNode& item : node.items) convert(reader, item, "strategy.units", lists.emplace_back());
  return lists;
}

UnitRule rule_of(const SpecReader& reader, const SpecNode& node) {
  if (node.kind == SpecNode::Kind::list) return {.lists = lists_of(reader, node)};
  if (node.text == "layer") return {};
  if (node.text == "model") return {.model = true};
  UnitRule rule;
  if (node.text.find_first_not_of("0123456789") != std::string::npos || node.text.empty())
    reader.fail(node, "strategy.units", "layer, model, a number of layers, or lists of layers: [[0, 3], [1, 2]]");
  convert(reader, node, "strategy.units", rule.layers);
  return rule;
}

}  // namespace

void read_units(const SpecSection& section, const Spec& spec, Strategy& s) {
  const SpecNode* node = section.find("no_sync");
  if (node != nullptr) convert(section.reader(), *node, section.name("no_sync"), s.no_sync.emplace());
  section.note_type("no_sync", type_of(true));
  Spec habit = spec;
  habit.strategy = s;
  section.record("no_sync", to_text(no_sync(habit, row_of(s.sharding))), node, "profile " + spec.software.name);
  const SpecNode* units = section.find("units");
  if (units != nullptr) s.units = rule_of(section.reader(), *units);
  const UnitRule& u = s.units;
  section.record("units",
                 u.model            ? "model"
                 : !u.lists.empty() ? fmt::format("{}", u.lists)
                 : u.layers > 1     ? to_text(u.layers)
                                    : "layer",
                 units, "default");
  read_quantize(section, s.zero_quantize);
}

Broken unit_rules(const Spec& spec) {
  const UnitRule& u = spec.strategy.units;
  if (u.layers < 1) return broken("units", "units: {} is not a number of layers of at least 1", u.layers);
  std::set<std::int64_t> named;
  for (const auto& list : u.lists) {
    if (list.empty()) return broken("units", "units: a list is empty; name its layers, or leave it out");
    for (const std::int64_t layer : list) {
      if (layer < 0 || layer >= spec.model.layers)
        return broken("units", "units: layer {} is not between 0 and {}", layer, spec.model.layers - 1);
      if (!named.insert(layer).second) return broken("units", "units: layer {} is in two units; name it once", layer);
    }
  }
  return {};
}

}  // namespace orrery
