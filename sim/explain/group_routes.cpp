#include "sim/explain/group_routes.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "models/cost/nccl/model.h"
#include "models/cost/nccl/topology.h"
#include "sim/cost/uplink_levels.h"

namespace orrery {
namespace {

std::string route_text(const Route& route) {
  if (route.hops.empty()) return "-";
  std::string text = to_string(route.hops.front().from);
  for (const Hop& hop : route.hops) {
    if (hop.links > 1) text += fmt::format(" - {} links", hop.links);
    text += " - " + to_string(hop.to);
  }
  return text;
}

// Lines on what the figures of a cluster's routes leave out.
std::vector<std::string> left_out(const Cluster& c) {
  std::vector<std::string> lines;
  if (!c.network) return lines;
  const Network& n = *c.network;
  if (n.routing == Routing::ecmp) lines.emplace_back("rates are without collisions of hashed flows");
  if (n.kind == NetworkKind::graph)
    lines.emplace_back("above leaves the rate is that of one link, used by nothing else");
  if (n.kind == NetworkKind::torus)
    lines.emplace_back(
        "a torus' rate is that of one link, used by nothing else; the latency is that of switches in its place");
  if (c.oversubscribed_above_gpus > 0) lines.emplace_back("links between pods are not on the ways");
  if (n.load > 0) lines.push_back(fmt::format("of uplinks other jobs take {:.3g} %", 100 * n.load));
  return lines;
}

bool is_slower(const Route& a, const Route& b) {
  return a.GBps < b.GBps || (a.GBps == b.GBps && a.latency > b.latency);
}

// The slowest way from a member of a group to the next, and in a ring from the last one to the first. Only the first
// members count where all ways are searched for in a fabric's graph.
Route slowest_route(const Cluster& c, const std::vector<std::int64_t>& gpus, bool ring) {
  constexpr std::size_t kMostInGraph = 64;
  const bool graph = c.network && c.network->kind == NetworkKind::graph;
  const std::size_t ways = ring ? gpus.size() : gpus.size() - 1, count = graph ? std::min(ways, kMostInGraph) : ways;
  Route slowest = route(c, gpus[0], gpus[1]);
  for (std::size_t i = 1; i < count; ++i) {
    Route next = route(c, gpus[i], gpus[(i + 1) % gpus.size()]);
    if (is_slower(next, slowest)) slowest = std::move(next);
  }
  return slowest;
}

void add_row(Table& t, const std::string& name, const std::string& ranks, const Route& way) {
  t.rows.push_back({name, ranks, route_text(way), fmt::format("{:.1f}", way.GBps),
                    fmt::format("{:.1f}", seconds(way.latency) * 1e6)});
}

}  // namespace

Section group_routes(const Prediction& p) {
  Table t;
  t.columns = {{"group", "", Align::left},
               {"ranks"},
               {"from its first to its second", "", Align::left},
               {"narrowest", "GB/s"},
               {"latency", "us"}};
  const Cluster& cluster = p.cluster;
  const JobSeats seats(p.plan, cluster, nccl_node_gpus(cluster));
  for (std::size_t d = 0; d < kDimensions; ++d) {
    const GroupTable& table = p.plan.dimensions[d];
    const auto& group = table.groups[table.member_of[0]];
    if (group.size() < 2 || group[1] >= p.plan.workers()) continue;
    std::vector<std::int64_t> gpus;
    for (const std::int32_t rank : group) {
      if (rank < p.plan.workers()) gpus.push_back(seats.domain_of(1, rank));  // a domain of one GPU is the GPU itself
    }
    const std::string name(name_of(static_cast<Dimension>(d)));
    const Route first = route(cluster, gpus[0], gpus[1]),
                slowest = slowest_route(cluster, gpus, static_cast<Dimension>(d) != Dimension::pipeline);
    add_row(t, name, fmt::format("{}", group.size()), first);
    if (is_slower(slowest, first)) add_row(t, name + ", slowest pair", "", slowest);
  }
  return {"Where groups lie", {}, t, t.rows.empty() ? std::vector<std::string>{} : left_out(cluster)};
}

}  // namespace orrery
