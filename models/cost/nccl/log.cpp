#include "models/cost/nccl/log.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "models/base/sensible.h"

namespace orrery {
namespace {

// NCCL's names of the types of paths between devices, in the order of NcclPath (src/graph/topo.cc, topoPathTypeStr).
constexpr std::array<std::string_view, 10> kPathNames = {"LOC", "NVL", "NVB", "C2C", "PIX",
                                                         "PXB", "P2C", "PXN", "PHB", "SYS"};

struct LoggedGraph {
  const char* key;
  std::optional<NcclGraph> LoggedNccl::*graph;
};
constexpr LoggedGraph kLoggedGraphs[] = {
    {"ring", &LoggedNccl::ring}, {"tree", &LoggedNccl::tree}, {"nvls", &LoggedNccl::nvls}};

template <class Visit>
void for_each_cell(const Visit& visit) {
  for (int k = 0; k < kCollectiveKinds; ++k) {
    for (int a = 0; a < kNcclAlgorithms; ++a) {
      for (int p = 0; p < kNcclProtocols; ++p)
        visit(static_cast<CollectiveKind>(k), static_cast<NcclAlgorithm>(a), static_cast<NcclProtocol>(p));
    }
  }
}

NcclRow& table_cell(NcclTable& table, CollectiveKind k, NcclAlgorithm a, NcclProtocol p) {
  return table[static_cast<std::size_t>(k)][static_cast<std::size_t>(a)][static_cast<std::size_t>(p)];
}

// Returns whether the log has a table row for a collective, with any algorithm and protocol.
bool is_logged(const NcclTable::value_type& ways) {
  return std::any_of(ways.begin(), ways.end(), [](const auto& protocols) {
    return std::any_of(protocols.begin(), protocols.end(), [](const NcclRow& r) { return r.bandwidth_GBps > 0; });
  });
}

std::string_view name_of(NcclPath path) { return kPathNames[static_cast<std::size_t>(path)]; }

nlohmann::ordered_json json_of(const NcclGraph& g) {
  return {{"channels", g.channels},          {"intra_GBps", g.intra_GBps}, {"inter_GBps", g.inter_GBps},
          {"intra", name_of(g.intra)},       {"inter", name_of(g.inter)},  {"plain_tree", g.plain_tree},
          {"same_channels", g.same_channels}};
}

NcclPath path_from(const JsonValue& name) {
  const auto path = find_path(name.text());
  if (!path) name.fail(fmt::format("no such path; known: {}", fmt::join(kPathNames, ", ")));
  return *path;
}

NcclGraph logged_graph(const JsonValue& g) {
  return {static_cast<int>(g.at("channels").whole(1, sensible::kMostChannels)),
          g.at("intra_GBps").number(0, sensible::kMostGBps),
          g.at("inter_GBps").number(0, sensible::kMostGBps),
          path_from(g.at("intra")),
          path_from(g.at("inter")),
          g.at("plain_tree").flag(),
          g.at("same_channels").flag()};
}

// Returns a tuning table with the logged rows; entries that were not logged have bandwidth 0.
NcclTable logged_table(const JsonValue& rows) {
  NcclTable table{};
  for (const JsonValue& r : rows.items()) {
    bool found = false;
    const std::string kind = r.at("kind").text(), algorithm = r.at("algorithm").text(),
                      protocol = r.at("protocol").text();
    const NcclRow row = {r.at("us").number(0, sensible::kMostMicroseconds),
                         r.at("GBps").number(0, sensible::kMostGBps)};
    for_each_cell([&](CollectiveKind k, NcclAlgorithm a, NcclProtocol p) {
      if (orrery::name_of(k) != kind || orrery::name_of(a) != algorithm || orrery::name_of(p) != protocol) return;
      table_cell(table, k, a, p) = row;
      found = true;
    });
    if (!found) r.fail(fmt::format("no such way: {} {} {}", kind, algorithm, protocol));
  }
  return table;
}

}  // namespace

std::optional<NcclPath> find_path(std::string_view name) {
  for (std::size_t i = 0; i < kPathNames.size(); ++i) {
    if (kPathNames[i] == name) return static_cast<NcclPath>(i);
  }
  return std::nullopt;
}

void apply(const LoggedNccl& logged, NcclModel& m) {
  if (logged.ring) m.graphs.ring = *logged.ring;
  if (logged.tree) m.graphs.tree = *logged.tree;
  if (logged.nvls) m.graphs.nvls = *logged.nvls;
  count_channels(m.topology, m.graphs);
  if (logged.collective_channels > 0) {
    m.graphs.collective_channels = logged.collective_channels;
    m.graphs.nvls_channels = logged.nvls_channels;
  }
  m.table = nccl_table(m.topology, m.graphs);
  if (!logged.table) return;
  for (std::size_t kind = 0; kind < m.table.size(); ++kind) {
    if (is_logged((*logged.table)[kind])) m.table[kind] = (*logged.table)[kind];
  }
}

NcclModel nccl_model(const Cluster& cluster, std::span<const int> members, const NcclJob& job,
                     const std::vector<LoggedNccl>& logged) {
  NcclTopology topology = nccl_topology(cluster, members);
  topology.nccl_minor = job.minor;
  if (topology.job_nodes > 0) topology.job_nodes = ceil_div(job.gpus, nccl_node_gpus(cluster));
  NcclModel model = nccl_model(topology);
  const std::int64_t ranks = std::accumulate(members.begin(), members.end(), std::int64_t{0});
  const auto is_of = [&](const LoggedNccl& l) { return l.ranks == ranks && l.nodes == std::ssize(members); };
  const auto has_nodes_of = [&](const LoggedNccl& l) {
    return l.nodes == LoggedNccl::kSeveralNodes && members.size() > 1 &&
           std::ranges::all_of(members, [&](int m) { return m == l.ranks; });
  };
  auto found = std::ranges::find_if(logged, is_of);
  if (found == logged.end()) found = std::ranges::find_if(logged, has_nodes_of);
  if (found != logged.end()) apply(*found, model);
  return model;
}

nlohmann::ordered_json json_of(const LoggedNccl& logged) {
  nlohmann::ordered_json entry = {{"ranks", logged.ranks},
                                  {"nodes", logged.nodes},
                                  {"version", logged.version},
                                  {"channels", logged.collective_channels},
                                  {"nvls_channels", logged.nvls_channels}};
  for (const LoggedGraph& g : kLoggedGraphs) {
    if (logged.*g.graph) entry["graphs"][g.key] = json_of(*(logged.*g.graph));
  }
  if (!logged.table) return entry;
  NcclTable table = *logged.table;
  entry["table"] = nlohmann::ordered_json::array();
  for_each_cell([&](CollectiveKind k, NcclAlgorithm a, NcclProtocol p) {
    const NcclRow& row = table_cell(table, k, a, p);
    if (row.bandwidth_GBps <= 0) return;
    entry["table"].push_back({{"kind", name_of(k)},
                              {"algorithm", name_of(a)},
                              {"protocol", name_of(p)},
                              {"us", row.latency_us},
                              {"GBps", row.bandwidth_GBps}});
  });
  return entry;
}

LoggedNccl logged_nccl_of(const JsonValue& entry) {
  LoggedNccl logged{.nodes = entry.at("nodes").whole(0, sensible::kMostMembers),
                    .ranks = entry.at("ranks").whole(1, sensible::kMostMembers)};
  logged.version = entry.text_or("version", "");
  logged.collective_channels = static_cast<int>(entry.whole_or("channels", 0, 0, sensible::kMostChannels));
  logged.nvls_channels = static_cast<int>(entry.whole_or("nvls_channels", 0, 0, sensible::kMostChannels));
  if (const auto graphs = entry.find("graphs")) {
    for (const LoggedGraph& g : kLoggedGraphs) {
      if (const auto graph = graphs->find(g.key)) logged.*g.graph = logged_graph(*graph);
    }
  }
  if (const auto table = entry.find("table")) logged.table = logged_table(*table);
  return logged;
}

}  // namespace orrery
