// Reads what lldpctl -f json prints on one host: {"lldp": {"interface": [{"eth0": {"chassis": {"leaf-3": {...}},
// "port":
// {...}}}, ...]}}. With a single interface, `interface` is a map instead of a list.
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/base/json_value.h"
#include "sim/topology/cluster_facts.h"

namespace orrery {
namespace {

using Json = nlohmann::json;

// Adds the switch at the other end of one interface. A chassis without a name has its keys ("id", "descr") in its
// place; then its identifier tells it from others.
void add_interface(const Json& interface, std::map<std::string, std::int64_t>& links) {
  if (!interface.is_object() || !interface.contains("chassis")) return;
  const Json& chassis = interface["chassis"];
  if (!chassis.is_object() || chassis.empty()) return;
  if (!chassis.contains("id"))
    ++links[chassis.begin().key()];
  else if (chassis["id"].is_object())
    ++links[text_in(chassis["id"], "value")];
}

void add_interfaces(const Json& named, std::map<std::string, std::int64_t>& links) {
  if (!named.is_object()) return;
  for (const auto& [name, interface] : named.items()) add_interface(interface, links);
}

}  // namespace

ClusterFacts lldp_neighbours(const std::string& text, const std::string& path) {
  const Json j = parse_json(path, text, "give what lldpctl -f json prints");
  if (!j.is_object() || !j.contains("lldp") || !j["lldp"].is_object() || !j["lldp"].contains("interface"))
    throw Error(fmt::format("{}: has no lldp.interface; give what lldpctl -f json prints", path));
  const Json& interfaces = j["lldp"]["interface"];
  std::map<std::string, std::int64_t> links;
  if (interfaces.is_array()) {
    for (const Json& item : interfaces) add_interfaces(item, links);
  } else {
    add_interfaces(interfaces, links);
  }
  if (links.empty()) throw Error(fmt::format("{}: names no switch at the other end of an interface", path));
  ClusterFacts facts;
  std::int64_t nics = 0, most = 0;
  for (const auto& [leaf, count] : links) {
    ++facts.hosts_on_leaf[leaf];
    nics += count;
    most = std::max(most, count);
  }
  facts.nics = nics;
  if (nics > 1) facts.kind = most == 1 ? NetworkKind::rails : NetworkKind::fat_tree;
  facts.remarks.push_back(fmt::format(
      "{}: {} interfaces on {} switches; leave out those that carry no training traffic", path, nics, links.size()));
  return facts;
}

}  // namespace orrery
