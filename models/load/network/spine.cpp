// This file reads what is above the leaves of cluster.network: parts of the spine, groups, and who else uses them.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/load/network/network.h"

namespace orrery {
namespace {

constexpr std::string_view kSpineKey = "cluster.network.spine";
constexpr SpecKey kSpineKeys[] = {
    {"leaves", "leaves (of each rail) that a part of the spine joins", "64"},
    {"ratio", "rate of a part's uplinks over what leaves the part", "7"},
};
constexpr SpecKey kGroupKeys[] = {
    {"leaves", "leaves of a group", "16"},
    {"spines", "switches of a group's own spine (dragonfly+)", "16", "", "required for dragonfly+"},
    {"links", "links of a leaf (dragonfly+: of such a switch) to other groups", "8"},
    {"Gbps", "rate of such a link, each way", "400", "", "a NIC's"},
};
constexpr SpecKey kNeighbourKeys[] = {
    {"load", "share of the uplinks' rate that further jobs take (cluster.network.load)", "0.3", "number", "0"},
    {"where", "links of which they take it: uplinks of leaves, those above, or both", "spine",
     "leaf | spine | everywhere"},
    {"burst_ms", "time for which they fill the links at once; 0: their load is spread evenly over time", "10"},
    {"jobs", "specs of the other jobs, each with its own placement", "[b.yaml]", "list of paths", "none"},
};
constexpr std::size_t kMostSpineLevels = 4;
constexpr double kLongestHop_us = 1e6;
// Bursts are met anew by every transfer; longer ones than this would often last longer than what is computed between
// two transfers of a step.
constexpr double kLeastBurst_ms = 1e-3, kMostBurst_ms = 20;

void read_levels(SpecReader& reader, const SpecNode& list, Network& n) {
  if (list.items.empty() || list.items.size() > kMostSpineLevels)
    reader.fail(list, kSpineKey, fmt::format("{} levels are not 1 to {}", list.items.size(), kMostSpineLevels));
  std::int64_t below = 0;
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const SpecNode& item = list.items[i];
    const SpecSection section(reader, &item, std::string(kSpineKey), kSpineKeys);
    if (section.find("leaves") == nullptr) reader.fail(item, section.name("leaves"), "missing");
    SpineLevel level;
    section.take_count("leaves", level.leaves, kMostRanks);
    section.take("ratio", level.ratio);
    if (level.leaves < 2 && list.items.size() > 1)
      reader.fail(item, section.name("leaves"), "a part below others joins 2 leaves or more; leave this level out");
    if (i > 0 && (level.leaves <= below || level.leaves % below != 0))
      reader.fail(
          item, section.name("leaves"),
          fmt::format("{} is no multiple of the {} leaves of a part below, which it joins", level.leaves, below));
    below = level.leaves;
    if (i > 0) {
      n.upper_spine.push_back(level);
    } else {
      n.spine_leaves = level.leaves;
      n.spine_ratio = level.ratio;
    }
  }
}

}  // namespace

void read_spine(const SpecSection& network, Network& n) {
  const SpecNode* node = network.find("spine");
  if (node != nullptr && node->kind == SpecNode::Kind::list) return read_levels(network.reader(), *node, n);
  const SpecSection spine(network.reader(), node, std::string(kSpineKey), kSpineKeys);
  spine.take_count("leaves", n.spine_leaves, kMostRanks);
  spine.take("ratio", n.spine_ratio);
}

void read_groups(const SpecSection& network, const SpecNode& at, const Cluster& c, Network& n) {
  const SpecNode* node = of_kind(network, at, "groups", has_groups(n.kind));
  if (node == nullptr) return;
  if (const SpecNode* spine = network.find("spine"); spine != nullptr)
    network.reader().fail(*spine, network.name("spine"), "a dragonfly has groups in its place");
  const SpecSection groups(network.reader(), node, "cluster.network.groups", kGroupKeys);
  const bool own_spine = n.kind == NetworkKind::dragonfly_plus;
  for (const std::string_view key : {"leaves", "spines", "links"}) {
    if (groups.find(key) == nullptr && (key != "spines" || own_spine))
      network.reader().fail(*node, groups.name(key), "missing");
  }
  if (const SpecNode* spines = groups.find("spines"); spines != nullptr && !own_spine)
    network.reader().fail(*spines, groups.name("spines"), "needs cluster.network.kind: dragonfly+");
  groups.take_count("leaves", n.groups.leaves, kMostRanks);
  groups.take_count("spines", n.groups.spines, kMostRanks);
  groups.take_count("links", n.groups.links, kMostRanks);
  n.groups.Gbps = c.nic_Gbps;
  groups.take("Gbps", n.groups.Gbps, "a NIC's");
}

void read_neighbours(const SpecSection& network, Network& n) {
  const SpecNode* node = network.find("neighbours");
  const SpecSection neighbours(network.reader(), node, "cluster.network.neighbours", kNeighbourKeys);
  const SpecNode *jobs = neighbours.find("jobs"), *load = neighbours.find("load");
  if (load != nullptr && network.find("load") != nullptr)
    network.reader().fail(*load, neighbours.name("load"), "cluster.network.load says the same; leave one of them out");
  if (load != nullptr)
    neighbours.take("load", n.load);
  else
    network.take("load", n.load);
  neighbours.take_named(
      "where", n.loaded, find_loaded_links, [](LoadedLinks l) { return name_of(l); }, "default");
  neighbours.take("burst_ms", n.burst_ms);
  const bool others = std::ranges::any_of(std::array{"load", "where", "burst_ms"},
                                          [&](const char* key) { return neighbours.find(key) != nullptr; }) ||
                      network.find("load") != nullptr;
  if (jobs == nullptr && (node == nullptr || others)) return neighbours.record("jobs", "", nullptr, "default");
  if (jobs == nullptr || jobs->kind != SpecNode::Kind::list || jobs->items.empty())
    network.reader().fail(*node, "cluster.network.neighbours.jobs", "a list of spec files is needed here");
  for (const SpecNode& job : jobs->items) n.jobs.push_back(beside(network.reader().path, job.text));
  neighbours.record("jobs", fmt::format("[{}]", fmt::join(n.jobs, ", ")), jobs, "");
}

static Broken neighbour_rules(const Network& n) {
  constexpr const char* kWhere = "cluster.network.neighbours.where";
  constexpr const char* kBurst = "cluster.network.neighbours.burst_ms";
  if (n.loaded != LoadedLinks::everywhere && n.leaf_nodes == 0)
    return broken(kWhere, "{}: {} has no leaves; leave the key out", kWhere, name_of(n.kind));
  const bool above = n.spine_leaves > 1 || !n.upper_spine.empty() || has_groups(n.kind);
  if (n.loaded == LoadedLinks::spine && !above)
    return broken(kWhere,
                  "{}: no links are known above those of leaves; give cluster.network.spine.leaves, or where: leaf",
                  kWhere);
  if (n.burst_ms != 0 && !(n.burst_ms >= kLeastBurst_ms && n.burst_ms <= kMostBurst_ms))
    return broken(
        kBurst,
        "{}: {} is not 0 or {} to {} ms; bursts longer than what is between two transfers are not built, leave "
        "the key out for an even load",
        kBurst, n.burst_ms, kLeastBurst_ms, kMostBurst_ms);
  if (n.burst_ms > 0 && n.leaf_nodes == 0)
    return broken(kBurst, "{}: {} has no leaves; leave the key out", kBurst, name_of(n.kind));
  const bool alone = n.load == 0;
  if (n.loaded != LoadedLinks::everywhere && alone)
    return broken(kWhere, "{}: it needs a load; give cluster.network.neighbours.load", kWhere);
  for (const char* key : {kWhere, kBurst}) {
    const bool given = key == kWhere ? n.loaded != LoadedLinks::everywhere : n.burst_ms > 0;
    if (given && !n.jobs.empty())
      return broken(
          key, "{}: it is of a load, and beside jobs, which play their own transfers, not built; leave it out", key);
  }
  if (n.burst_ms > 0 && alone)
    return broken(kBurst, "{}: bursts need a load; give cluster.network.neighbours.load", kBurst);
  return {};
}

Broken spine_rules(const Network& n) {
  if (!(n.spine_ratio >= 1))
    return broken("cluster.network.spine.ratio", "cluster.network.spine.ratio: {} is below 1", n.spine_ratio);
  for (const SpineLevel& level : n.upper_spine) {
    if (!(level.ratio >= 1))
      return broken("cluster.network.spine.ratio", "cluster.network.spine.ratio: {} is below 1", level.ratio);
  }
  if (!(n.latency_us >= 0 && n.latency_us <= kLongestHop_us))
    return broken("cluster.network.latency_us", "cluster.network.latency_us: {} is no time from 0 to {:.0f}",
                  n.latency_us, kLongestHop_us);
  if (n.kind == NetworkKind::dragonfly && n.routing == Routing::pinned)
    return broken("cluster.network.routing.kind",
                  "cluster.network.routing.kind: pinned needs uplinks to a spine, of which a dragonfly's leaves have "
                  "none; take adaptive, or kind: dragonfly+");
  if (has_groups(n.kind) && !(n.groups.Gbps > 0))
    return broken("cluster.network.groups.Gbps", "cluster.network.groups.Gbps: {} is no rate of a link", n.groups.Gbps);
  return neighbour_rules(n);
}

}  // namespace orrery
