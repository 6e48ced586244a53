#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "models/spec/network.h"

namespace orrery {

// The routes between the switches of a fabric: all shortest ones, found by breadth-first search (Boost.Graph). At every
// switch what goes to one other is divided evenly over all links that lead nearer to it (equal-cost multi-path routing
// without unlucky hashes). A cable with links in both directions is two links, numbered 2 i from its first to its
// second switch and 2 i + 1 back.
class GraphRoutes {
 public:
  // The graph must outlive this object.
  explicit GraphRoutes(const FabricGraph& graph);

  std::int64_t link_count() const { return 2 * static_cast<std::int64_t>(graph_.cables.size()); }
  // the rate of all of a cable's links in one direction, bytes per second
  double rate_of(std::int64_t link) const;
  // For every link that some of the bytes from one switch to another take, its number and their share; none where there
  // is no way, or none is needed.
  using Shares = std::vector<std::pair<std::int64_t, double>>;
  Shares shares(std::int32_t from, std::int32_t to);
  // Calls visit(link, share) for each of the shares, which are kept for the next call.
  void visit_links(std::int32_t from, std::int32_t to, const std::function<void(std::int64_t, double)>& visit);
  // Whether the NICs of two nodes are on the same switches, so that no link joins them.
  bool beside(std::int64_t node, std::int64_t other) const { return graph_.leaves[node] == graph_.leaves[other]; }
  // Returns the number of links between two switches on the shortest way; -1: there is none.
  int distance(std::int32_t from, std::int32_t to) { return distances_to(to)[from]; }

 private:
  struct Search;  // the graph as Boost.Graph searches it
  struct Neighbour {
    std::int32_t to = 0;
    std::int64_t link = 0;
  };

  const std::vector<int>& distances_to(std::int32_t to);

  const FabricGraph& graph_;
  std::vector<std::vector<Neighbour>> neighbours_;  // of each switch
  std::shared_ptr<const Search> search_;
  std::map<std::int32_t, std::vector<int>> distances_;
  std::map<std::pair<std::int32_t, std::int32_t>, Shares> shares_;
};

}  // namespace orrery
