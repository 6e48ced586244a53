// This file reads which of a cluster's nodes a job has: cluster.network.placement, node_names and job_nodes.
#include <map>

#include "models/base/host_list.h"
#include "models/base/input_file.h"
#include "models/base/names.h"
#include "models/load/reader.h"

namespace orrery {
namespace {

constexpr SpecKey kPlacementKeys[] = {
    {"nodes", "file with the names of the job's nodes in the order of its ranks (scontrol show hostnames)", "hosts.txt",
     "", "none"},
};
constexpr std::size_t kMostNames = 1'000'000;
constexpr std::string_view kFreePlace = "-";

// The number of every node of a cluster by its name.
using Places = std::map<std::string, std::int64_t, std::less<>>;

Places read_node_names(const SpecSection& network) {
  std::string list;
  Places places;
  if (!network.take("node_names", list)) return places;
  const SpecNode& node = *network.find("node_names");
  std::int64_t place = 0;
  for (const std::string& name : network.located(node, "node_names", [&] { return host_names(list, kMostNames); })) {
    if (name != kFreePlace && !places.emplace(name, place).second)
      network.reader().fail(node, network.name("node_names"), fmt::format("{} is there twice", printable(name)));
    ++place;
  }
  return places;
}

// Returns the numbers of the nodes that a file names.
class NamedNodes {
 public:
  NamedNodes(const Places& places, std::string path) : places_(places), path_(std::move(path)) {}

  std::vector<std::int64_t> read() {
    const std::string text = read_input(path_, kMostSettings);
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      ++line_;
      read_line(rest.substr(0, std::min(rest.substr(0, end).find('#'), end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (nodes_.empty()) throw Error(fmt::format("{}: has no name of a node", path_));
    return nodes_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("{}:{}: {}", path_, line_, printable(what)));
  }

  std::vector<std::string> names_in(std::string_view line) const {
    try {
      return host_names(line, kMostNames);
    } catch (const Error& e) {
      fail(e.what());
    }
  }

  void read_line(std::string_view line) {
    for (const std::string& name : names_in(line)) {
      const auto place = places_.find(name);
      if (place == places_.end()) fail(unknown(name));
      const auto [first, fresh] = lines_.emplace(name, line_);
      if (!fresh) fail(fmt::format("{} is in line {} already; a job has a node once", name, first->second));
      nodes_.push_back(place->second);
    }
  }

  std::string unknown(const std::string& name) const {
    std::vector<std::string_view> known;
    for (const auto& [each, number] : places_) known.push_back(each);
    const std::string_view near = nearest(name, known);
    return fmt::format("{} is not one of cluster.network.node_names{}", name,
                       near.empty() ? "" : fmt::format("; did you mean {}?", near));
  }

  const Places& places_;
  std::string path_;
  int line_ = 0;
  std::map<std::string, int> lines_;  // for each name, its line
  std::vector<std::int64_t> nodes_;
};

}  // namespace

void read_placement(const SpecSection& network, Network& n) {
  const SpecNode* node = network.find("placement");
  const bool by_file = node != nullptr && node->kind == SpecNode::Kind::map;
  const Places places = read_node_names(network);
  const SpecSection placement(network.reader(), by_file ? node : nullptr, "cluster.network.placement", kPlacementKeys);
  std::string file;
  const bool named = placement.take("nodes", file);
  if (!by_file) {
    network.take_named(
        "placement", n.placement, find_placement, [](Placement p) { return name_of(p); }, "default");
  } else if (!named) {
    network.reader().fail(*node, placement.name("nodes"), "missing");
  } else if (places.empty()) {
    network.reader().fail(*node, placement.name("nodes"),
                          "needs cluster.network.node_names, which orrery import-topology writes");
  } else {
    n.job_nodes = NamedNodes(places, beside(network.reader().path, file)).read();
    n.placement = Placement::listed;
    network.record("placement", fmt::format("{{nodes: {}}}", file), node, "");
  }
  std::vector<std::int64_t> numbers;
  if (!network.take("job_nodes", numbers)) return;
  if (node != nullptr)
    network.reader().fail(*network.find("job_nodes"), "cluster.network.job_nodes",
                          "they are the placement; leave cluster.network.placement out");
  n.job_nodes = numbers;
  n.placement = Placement::listed;
}

}  // namespace orrery
