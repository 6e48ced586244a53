// This file reads cluster.network.faults: links that are slow or down, always or for a time of a run.
#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "models/load/network/network.h"

namespace orrery {
namespace {

constexpr std::string_view kFaultsKey = "cluster.network.faults";
constexpr std::string_view kRateOfFault = "rate of each of these NICs, or of the link; 0: the link is down";
constexpr SpecKey kFaultKeys[] = {
    {"node", "a node whose NICs are slow, or one of them (nic)", "17", "", "none"},
    {"nic", "a slow NIC, NODE.NIC; or its number at the node that is given", "17.3", "", "none"},
    {"Gbps", kRateOfFault, "100"},
    {"leaf", "a leaf with fewer uplinks, a slow one (link) or a plane that is down", "3", "", "none"},
    {"uplinks", "uplinks of this leaf that work", "20"},
    {"link", "a slow uplink, leaf 3 - spine 5, or its number at the leaf that is given; of every rail and plane",
     "leaf 3 - spine 5", "", "none"},
    {"plane", "a plane that is down: at the node or leaf that is given, or everywhere", "1", "", "none"},
    {"down", "begin and end of the fault in seconds of a run, which run-length plays; without a rate nothing works",
     "[120, 180]", "list of numbers", "none"},
};
constexpr SpecKey kFaultShareKeys[] = {
    {"share", "share of NICs that are slow, drawn by the seed", "0.001"},
    {"Gbps", kRateOfFault, "100"},
};

// Takes a number off the front of a text; -1 if there is none.
std::int64_t take_number(std::string_view& text) {
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return -1;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// Reads "NODE.NIC" or "leaf LEAF - spine LINK": two numbers, after and between the words that are given. Returns
// whether the text is one.
bool read_pair(std::string_view text, std::string_view before, std::string_view between, std::int64_t& first,
               std::int64_t& second) {
  if (!text.starts_with(before)) return false;
  text.remove_prefix(before.size());
  first = take_number(text);
  if (first < 0 || !text.starts_with(between)) return false;
  text.remove_prefix(between.size());
  second = take_number(text);
  return second >= 0 && text.empty();
}

std::string no_leaf(const LinkFault& f, const Cluster& c, const Network& n) {
  if (n.leaf_nodes == 0) return "this network has no leaves; give leaf: {nodes: N}, or faults of nodes";
  return fmt::format("leaf {} is not one of 0 to {} ({} nodes, {} on a leaf)", f.leaf, (c.nodes - 1) / n.leaf_nodes,
                     c.nodes, n.leaf_nodes);
}

// Returns a text on the first mistake in the plane of a fault, or "".
std::string wrong_plane(const LinkFault& f, const Cluster& c, const Network& n) {
  if (n.planes < 2) return fmt::format("plane {}: the network has one plane (planes)", f.plane);
  if (f.plane >= n.planes) return fmt::format("plane {} is not one of 0 to {}", f.plane, n.planes - 1);
  if (f.leaf >= 0 && f.leaf > (c.nodes - 1) / n.leaf_nodes) return no_leaf(f, c, n);
  return f.node >= c.nodes ? fmt::format("node {} is not one of 0 to {} (cluster.nodes)", f.node, c.nodes - 1) : "";
}

std::string wrong_leaf(const LinkFault& f, const Cluster& c, const Network& n, bool stops) {
  if (n.leaf_nodes == 0 || f.leaf > (c.nodes - 1) / n.leaf_nodes) return no_leaf(f, c, n);
  if (f.link >= n.leaf_uplinks) return fmt::format("link {} is not one of 0 to {}", f.link, n.leaf_uplinks - 1);
  if (stops) return "";
  if (f.link >= 0 && !(f.Gbps >= 0 && f.Gbps <= n.leaf_Gbps))
    return fmt::format("{} Gbps is no rate from 0 (down) to an uplink's, {}", f.Gbps, n.leaf_Gbps);
  if (f.link < 0 && (f.uplinks < 1 || f.uplinks > n.leaf_uplinks))
    return fmt::format("{} uplinks are not 1 to {}", f.uplinks, n.leaf_uplinks);
  return "";
}

// Returns a text on the first mistake in a fault; "" if there is none.
std::string wrong_with(const LinkFault& f, const Cluster& c, const Network& n, bool stops) {
  if (f.plane >= 0) return wrong_plane(f, c, n);
  if (f.leaf >= 0) return wrong_leaf(f, c, n, stops);
  if (f.node < 0 || f.node >= c.nodes)
    return fmt::format("node {} is not one of 0 to {} (cluster.nodes)", f.node, c.nodes - 1);
  if (f.nic >= c.nics) return fmt::format("NIC {} is not one of 0 to {}", f.nic, c.nics - 1);
  if (!stops && !(f.Gbps > 0 && f.Gbps <= c.nic_Gbps))
    return fmt::format("{} Gbps is no rate above 0 and up to a NIC's, {}; one that is down has down: [FROM, TO]",
                       f.Gbps, c.nic_Gbps);
  return "";
}

// Reads one item of the list.
class FaultReader {
 public:
  FaultReader(SpecReader& reader, const SpecNode& item)
      : reader_(reader), item_(item), section_(reader, &item, std::string(kFaultsKey), kFaultKeys) {}

  void read(const Cluster& c, Network& n) {
    LinkFault fault = values();
    if (!is_whole(fault))
      reader_.fail(
          item_, kFaultsKey,
          "a node or nic with Gbps, or a leaf with uplinks, or a link with Gbps, or a plane (of a node, a leaf "
          "or all) is needed here; any may have down: [FROM, TO] beside it or in the place of the rate");
    // Without one of several uplinks the others carry all.
    const bool stops = has("down") && !has("Gbps") && !has("uplinks") && !has("plane") && !has("link");
    if (std::string wrong = wrong_with(fault, c, n, stops); !wrong.empty()) reader_.fail(item_, kFaultsKey, wrong);
    if (!has("down")) {
      n.faults.push_back(fault);
      if (fault.link >= 0 && uplink_rates(n, fault.leaf).empty())
        reader_.fail(item_, kFaultsKey, fmt::format("no uplink of leaf {} is left that works", fault.leaf));
      return;
    }
    TimedFault timed = {.fault = fault, .stops = stops};
    read_times(timed);
    n.timed_faults.push_back(timed);
  }

 private:
  bool has(std::string_view key) const { return section_.find(key) != nullptr; }

  LinkFault values() {
    LinkFault f;
    std::string nic, link;
    section_.take("node", f.node);
    if (section_.take("nic", nic, "none")) number("nic", nic, "", ".", "node", f.node, f.nic);
    section_.take("Gbps", f.Gbps);
    section_.take("leaf", f.leaf);
    section_.take("uplinks", f.uplinks);
    if (section_.take("link", link, "none")) number("link", link, "leaf ", " - spine ", "leaf", f.leaf, f.link);
    section_.take("plane", f.plane);
    return f;
  }

  // Reads a number that stands beside the number of what it is part of, or in one text with it.
  void number(std::string_view key, std::string_view text, std::string_view before, std::string_view between,
              std::string_view whole, std::int64_t& of, std::int64_t& value) const {
    const std::string given(text);
    if (has(whole)) {
      value = take_number(text);
      if (value < 0 || !text.empty())
        reader_.fail(*section_.find(key), section_.name(key),
                     fmt::format("{} is no number of a {} at the {} that is given", given, key, whole));
      return;
    }
    if (!read_pair(text, before, between, of, value))
      reader_.fail(*section_.find(key), section_.name(key),
                   fmt::format("{} is not {}{}{}{}; or give the {} beside it", given, before,
                               key == "nic" ? "NODE" : "LEAF", between, key == "nic" ? "NIC" : "LINK", whole));
  }

  // Whether the keys that a fault needs are there, and no others.
  bool is_whole(const LinkFault& f) const {
    const bool of_node = has("node") || has("nic"), of_leaf = has("leaf") || has("link");
    const bool below = (has("node") && f.node < 0) || (has("leaf") && f.leaf < 0);
    if (has("plane"))
      return f.plane >= 0 && !below && !(of_node && of_leaf) && !has("nic") && !has("link") && !has("Gbps") &&
             !has("uplinks");
    if (of_node == of_leaf || below) return false;
    if (of_node || has("link")) return !has("uplinks") && (has("Gbps") || has("down"));
    return !has("Gbps") && (has("uplinks") || has("down"));
  }

  void read_times(TimedFault& timed) const {
    const SpecNode& times = *section_.find("down");
    const std::string name = section_.name("down");
    if (times.kind != SpecNode::Kind::list || times.items.size() != 2)
      reader_.fail(times, name, "begin and end in seconds are needed here: [120, 180]");
    convert(reader_, times.items[0], name, timed.from_s);
    convert(reader_, times.items[1], name, timed.until_s);
    if (!(timed.from_s >= 0 && timed.until_s > timed.from_s))
      reader_.fail(times, name, fmt::format("{} to {} s is no time of a run", timed.from_s, timed.until_s));
  }

  SpecReader& reader_;
  const SpecNode& item_;
  const SpecSection section_;
};

void read_share(const SpecSection& network, const SpecNode& node, Network& n) {
  const SpecSection share(network.reader(), &node, std::string(kFaultsKey), kFaultShareKeys);
  share.take("share", n.fault_share);
  share.take("Gbps", n.fault_Gbps);
  if (n.fault_Gbps > 0 && share.find("share") == nullptr) network.reader().fail(node, share.name("share"), "missing");
}

}  // namespace

void read_faults(const SpecSection& network, const Cluster& c, Network& n) {
  const SpecNode* node = network.find("faults");
  if (node == nullptr) return;
  if (node->kind == SpecNode::Kind::map) return read_share(network, *node, n);
  if (node->kind != SpecNode::Kind::list)
    network.reader().fail(*node, kFaultsKey,
                          "a list [{node: 17, Gbps: 100}], or {share: 0.001, Gbps: 100}, is needed here");
  for (const SpecNode& item : node->items) {
    if (item.kind == SpecNode::Kind::map && item.find("share") != nullptr)
      network.reader().fail(item, kFaultsKey,
                            "a share is drawn from all NICs and no item of a list; give a map: faults: {share: 0.001, "
                            "Gbps: 100}");
    FaultReader(network.reader(), item).read(c, n);
  }
}

}  // namespace orrery
