#include "sim/cost/graph_routes.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>

namespace orrery {

struct GraphRoutes::Search {
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS>;

  explicit Search(const FabricGraph& fabric) : graph(static_cast<std::size_t>(fabric.switches)) {
    for (const FabricGraph::Cable& c : fabric.cables) boost::add_edge(c.from, c.to, graph);
  }

  Graph graph;
};

GraphRoutes::GraphRoutes(const FabricGraph& graph)
    : graph_(graph), neighbours_(graph.switches), search_(std::make_shared<Search>(graph)) {
  for (std::size_t i = 0; i < graph.cables.size(); ++i) {
    const FabricGraph::Cable& c = graph.cables[i];
    neighbours_[c.from].push_back({c.to, 2 * static_cast<std::int64_t>(i)});
    neighbours_[c.to].push_back({c.from, 2 * static_cast<std::int64_t>(i) + 1});
  }
}

double GraphRoutes::rate_of(std::int64_t link) const {
  const FabricGraph::Cable& c = graph_.cables[link / 2];
  return c.count * c.Gbps * 1e9 / 8;
}

const std::vector<int>& GraphRoutes::distances_to(std::int32_t to) {
  const auto [at, fresh] = distances_.try_emplace(to);
  if (!fresh) return at->second;
  std::vector<int>& distances = at->second;
  distances.assign(graph_.switches, -1);
  distances[to] = 0;
  const auto record = boost::record_distances(distances.data(), boost::on_tree_edge());
  boost::breadth_first_search(search_->graph, to, boost::visitor(boost::make_bfs_visitor(record)));
  return distances;
}

// Goes from the farthest switch to the nearest, so that all that reaches a switch is known when it is divided.
GraphRoutes::Shares GraphRoutes::shares(std::int32_t from, std::int32_t to) {
  const std::vector<int>& distances = distances_to(to);
  Shares found;
  if (distances[from] < 0) return found;
  std::map<std::int32_t, double> now = {{from, 1}};
  for (int left = distances[from]; left > 0; --left) {
    std::map<std::int32_t, double> next;
    for (const auto& [at, share] : now) {
      double links = 0;
      for (const Neighbour& n : neighbours_[at])
        links += distances[n.to] == left - 1 ? graph_.cables[n.link / 2].count : 0;
      for (const Neighbour& n : neighbours_[at]) {
        if (distances[n.to] != left - 1) continue;
        const double part = share * graph_.cables[n.link / 2].count / links;
        found.emplace_back(n.link, part);
        next[n.to] += part;
      }
    }
    now = std::move(next);
  }
  return found;
}

void GraphRoutes::visit_links(std::int32_t from, std::int32_t to,
                              const std::function<void(std::int64_t, double)>& visit) {
  auto at = shares_.find({from, to});
  if (at == shares_.end()) at = shares_.emplace(std::pair(from, to), shares(from, to)).first;
  for (const auto& [link, share] : at->second) visit(link, share);
}

}  // namespace orrery
