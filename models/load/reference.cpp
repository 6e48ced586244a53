#include "models/load/reference.h"

#include <algorithm>
#include <optional>

#include "models/base/data.h"
#include "models/base/quantity.h"
#include "models/load/open_spec.h"
#include "models/schedule/schedules.h"

namespace orrery {
namespace {

// The specs that spec_reference() parses to collect all keys. Together these specs contain every map; the maps are as
// empty as possible, with only those keys that a spec must give.
constexpr const char* kSpecs[] = {
    "model: {layers: 2, hidden: 8, heads: 2, feed_forward: 8, vocab: 8, moe: {}, mla: {}, sliding_window: {}, "
    "indexer: {}, recurrence: {}, compressed_attention: {}, hyper_connections: {}, "
    "vision: {layers: 1, hidden: 8, heads: 2, feed_forward: 8}}\n"
    "sequence: 8\n"
    "cluster: {gpu: h100-sxm, host: {}, nvme: {}, storage: {}, stragglers: {}, failures: {}, "
    "variation: {}, network: {leaf: {nodes: 1}, sites: {nodes: 1, Gbps: 1, ms: 0}, faults: {}, flaps: "
    "{every_s: 1, down_s: 1}, pods: {gpus: 1, ratio: 1}, incast: {senders: 1, share: 1}}}\n"
    "strategy: {parameter_server: {}, zero_quantize: {}, checkpoint: {}, quantise: {}}\n",
    "model: {layers: 2, hidden: 8, heads: 2, feed_forward: 8, vocab: 8, lora: {rank: 1}, moe: {imbalance: {}}}\n"
    "sequence: {length: 8, documents: {}, images: {}}\n"
    "cluster: {gpu: h100-sxm, stragglers: [{}], nic_Gbps: 1, network: {kind: dragonfly, leaf: {nodes: 1}, groups: "
    "{leaves: 1, links: 1}, neighbours: {jobs: [b.yaml]}, faults: [{node: 0, Gbps: 1}]}}\n"
    "strategy: {context_kind: {}, schedule: {file: order.txt}}\n",
    "model: {layers: 2, hidden: 8, heads: 2, feed_forward: 8, vocab: 8}\n"
    "sequence: 8\n"
    "generate: {}\n"
    "cluster: {gpu: h100-sxm, network: {kind: torus, torus: {shape: [1]}}}\n",
    "model: {layers: 2, hidden: 8, heads: 2, feed_forward: 8, vocab: 8}\n"
    "sequence: 8\n"
    "teacher: {layers: 2, hidden: 8, heads: 2, feed_forward: 8, vocab: 8}\n"
    "distill: {gpus: 1, features: {}}\n"
    "gpus: 2\n"
    "cluster: {gpu: h100-sxm}\n",
    "model: {layers: 2, hidden: 8, heads: 2, feed_forward: 8, vocab: 8}\n"
    "sequence: 8\n"
    "dpo: {gpus: 1}\n"
    "gpus: 2\n"
    "cluster: {gpu: h100-sxm, nics: 1, network: {kind: graph, graph: {switches: 2, cables: [[0, 1, 1, 1]], nodes: "
    "[{switches: [0]}]}}}\n"};

std::string default_of(const Origin& origin) {
  if (is_given(origin)) return "required";
  if (origin.from.starts_with("profile ")) return "the stack's";
  if (origin.from != "default") return origin.from;
  return origin.value.empty() || origin.value == "null" ? "-" : origin.value;
}

// The rows of the reference of keys, while they are collected. The rows of a map's keys come after the row of the map
// itself.
struct Reference {
  SpecKeyBook book;
  std::vector<Origin> origins;
  std::vector<KeyReference> rows;

  const Origin* origin_of(const std::string& key) const {
    const auto found = std::ranges::find(origins, key, &Origin::key);
    return found == origins.end() ? nullptr : &*found;
  }

  KeyReference row_of(const std::string& key, const SpecKey& k) const {
    const auto type = book.types.find(key);
    const Origin* origin = origin_of(key);
    const auto map = std::ranges::find(book.maps, key, &SpecKeyBook::Map::path);
    const bool maps = map != book.maps.end();
    const std::string plain = type != book.types.end() ? type->second : maps ? "map" : "";
    return {key,
            k.values.empty() ? plain : std::string(k.values),
            std::string(unit_of_key(key)),
            !k.otherwise.empty() ? std::string(k.otherwise)
            : origin == nullptr  ? "-"
                                 : default_of(*origin),
            std::string(k.meaning),
            std::string(k.example),
            maps ? std::string(map->short_key) : ""};
  }

  void add(const std::string& path) {
    for (const SpecKeyBook::Map& map : book.maps) {
      if (map.path != path) continue;
      for (const SpecKey& k : map.keys) {
        const std::string key = path.empty() ? std::string(k.name) : path + "." + std::string(k.name);
        if (std::ranges::find(rows, key, &KeyReference::key) != rows.end()) continue;
        rows.push_back(row_of(key, k));
        add(key);
      }
    }
  }
};

}  // namespace

std::vector<KeyReference> spec_reference() {
  Reference reference;
  for (const char* text : kSpecs) {
    const OpenSpec read = parse_open_spec(text, "reference", {}, &reference.book);
    const std::vector<Origin>& origins = read.spec.origins;
    reference.origins.insert(reference.origins.end(), origins.begin(), origins.end());
  }
  reference.add("");
  return std::move(reference.rows);
}

std::vector<std::string> names_at(std::string_view key) {
  std::vector<std::string> names;
  const auto of_data = [&](std::string_view folder) {
    const std::vector<std::string_view> found = data_names(folder);
    names.assign(found.begin(), found.end());
  };
  if (key == "model" || key == "model.base") of_data("models");
  if (key == "cluster.gpu") of_data("gpus");
  if (key == "software.profile") of_data("software");
  if (key == "cluster.node") of_data("nodes");
  if (key == "strategy.schedule")
    for (const ScheduleRow& row : schedule_rows()) names.emplace_back(row.name);
  return names;
}

}  // namespace orrery
