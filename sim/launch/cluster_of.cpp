#include <charconv>

#include <fmt/format.h>

#include "models/base/data.h"
#include "models/base/error.h"
#include "models/base/names.h"
#include "models/load/aliases.h"
#include "sim/launch/import.h"

namespace orrery {

ClusterName cluster_of(std::string_view name) {
  constexpr std::int64_t kMostNodes = 1'000'000;
  ClusterName cluster{std::string(name), 1};
  std::int64_t nodes = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, nodes);
  if (error == std::errc() && stop != end && *stop == 'x') cluster = {std::string(stop + 1, end), nodes};
  if (cluster.nodes < 1 || cluster.nodes > kMostNodes)
    throw Error(fmt::format("--on: {}: nodes are not between 1 and {}", printable(std::string(name)), kMostNodes));
  cluster.node = canonical_value("cluster.node", cluster.node);
  const std::vector<std::string_view> known = data_names("nodes");
  for (const std::string_view node : known) {
    if (node == cluster.node) return cluster;
  }
  throw Error("--on: " + unknown_name("node", printable(cluster.node), known) + " (as in 2xdgx-h100)");
}

}  // namespace orrery
