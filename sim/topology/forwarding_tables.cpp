// Reads the forwarding tables of an InfiniBand fabric's switches, as ibroute prints one and dump_lfts.sh or OpenSM all.
// A table begins with `Unicast lids [0x0-0x14] of switch Lid 5 guid 0x... (name):`; each of its lines is the number of
// a destination, the port by which the switch sends to it, and what it is: `0x0003 033 : (Channel Adapter portguid
// 0x...: 'node-17 mlx5_3')`.
#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "models/base/error.h"
#include "sim/topology/cluster_facts.h"
#include "sim/topology/lines.h"

namespace orrery {
namespace {

// One switch: how many hosts' adapters it sends to by each of its ports.
struct ForwardingTable {
  std::string name;
  std::map<int, std::int64_t> adapters;
};

// The hosts that a leaf reaches over other switches. A port with a single adapter is taken to lead to a host.
struct FarHosts {
  std::int64_t hosts = 0, ports = 0, most = 0;  // most: over one port

  bool even() const { return ports == 0 || most <= (hosts + ports - 1) / ports; }
  // the number of evenly used links that would be as full as the fullest one
  std::int64_t as_even_links() const { return even() ? ports : std::max<std::int64_t>(1, hosts / most); }
};

FarHosts far_hosts(const ForwardingTable& table) {
  FarHosts far;
  for (const auto& [port, adapters] : table.adapters) {
    if (adapters < 2) continue;
    far.hosts += adapters;
    far.most = std::max(far.most, adapters);
    ++far.ports;
  }
  return far;
}

bool is_leaf(const ForwardingTable& table) {
  return std::ranges::any_of(table.adapters, [](const auto& port) { return port.second == 1; });
}

// The name in brackets at the end of a table's first line.
std::string switch_name(std::string_view line) {
  const std::size_t begin = line.rfind('('), end = line.rfind(')');
  const bool found = begin != std::string_view::npos && end != std::string_view::npos && begin < end;
  return found ? std::string(line.substr(begin + 1, end - begin - 1)) : "without a name";
}

// The LID that a table's first line says.
int lid_of(std::string_view line) {
  constexpr std::string_view kWord = " Lid ";
  const std::size_t at = line.find(kWord);
  int lid = 0;
  if (at != std::string_view::npos) std::from_chars(line.data() + at + kWord.size(), line.data() + line.size(), lid);
  return lid;
}

// routes: the port by which the switch sends to each LID, in the fabric; null where the file does not say which switch.
void add_destination(std::string_view line, ForwardingTable& table, std::map<int, int>* routes) {
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() < 5 || words[2] != ":" || words[3] != "(Channel" || line.find("Aggregation Node") != line.npos)
    return;
  int port = 0;
  const auto [end, error] = std::from_chars(words[1].data(), words[1].data() + words[1].size(), port);
  if (error != std::errc{} || end != words[1].data() + words[1].size() || port < 1) return;
  ++table.adapters[port];
  int lid = 0;
  if (words[0].starts_with("0x")) std::from_chars(words[0].data() + 2, words[0].data() + words[0].size(), lid, 16);
  if (lid > 0 && routes != nullptr) (*routes)[lid] = port;
}

}  // namespace

ClusterFacts forwarding_tables(std::string_view text, const std::string& path) {
  std::vector<ForwardingTable> tables;
  ClusterFacts facts;
  std::map<int, int>* routes = nullptr;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.starts_with("Unicast lids")) {
      tables.push_back({switch_name(line), {}});
      const int lid = lid_of(line);
      routes = lid > 0 ? &facts.fabric.tables[lid] : nullptr;
    } else if (!tables.empty()) {
      add_destination(line, tables.back(), routes);
    }
  }
  const ForwardingTable* fullest = nullptr;
  for (const ForwardingTable& table : tables) {
    if (!is_leaf(table) || far_hosts(table).ports == 0) continue;
    const std::int64_t links = far_hosts(table).as_even_links();
    if (facts.even_uplinks && *facts.even_uplinks <= links) continue;
    facts.even_uplinks = links;
    fullest = &table;
  }
  if (fullest == nullptr)
    throw Error(
        fmt::format("{}: has no table of a switch with hosts below it and others beyond; give those of all "
                    "switches (dump_lfts.sh)",
                    path));
  facts.routing = Routing::d_mod_k;
  const FarHosts far = far_hosts(*fullest);
  if (!far.even())
    facts.remarks.push_back(fmt::format(
        "{}: {} sends to {} of {} adapters beyond it over one of its {} links, as if it had {} that are evenly used",
        path, fullest->name, far.most, far.hosts, far.ports, far.as_even_links()));
  return facts;
}

}  // namespace orrery
