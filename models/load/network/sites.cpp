// This file reads cluster.network.sites: buildings, and the links between them.
#include "models/spec/sites.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "models/load/network/network.h"

namespace orrery {
namespace {

constexpr std::string_view kSitesKey = "cluster.network.sites";
constexpr SpecKey kSiteKeys[] = {
    {"nodes", "nodes of a site", "1024"},
    {"Gbps", "rate of all links of a site to the others, each way", "12800", "", "required in a map"},
    {"ms", "time of a bit from one site to another", "5", "", "required in a map"},
    {"buffer_MiB", "bytes of a connection between sites that may be on their way (NCCL_BUFFSIZE)", "64"},
    {"to", "links to other sites of a list by their numbers, each with Gbps, ms and buffer_MiB",
     "{0: {Gbps: 12800, ms: 5}}", "map of links", "none"},
};
constexpr SpecKey kLinkKeys[] = {
    {"Gbps", "rate of all links between the two sites, each way", "12800"},
    {"ms", "time of a bit from one to the other", "5"},
    {"buffer_MiB", "bytes of a connection that may be on their way", "64"},
};

// Reads sites of different sizes, and the links that each has to others.
class SiteList {
 public:
  SiteList(SpecReader& reader, const SpecNode& list, Network& n) : reader_(reader), list_(list), n_(n) {}

  void read() {
    const auto count = static_cast<std::int64_t>(list_.items.size());
    if (count < 2 || count > kMostSites) fail(list_, fmt::format("{} sites are not 2 to {}", count, kMostSites));
    for (std::int64_t site = 0; site < count; ++site) read_site(list_.items[static_cast<std::size_t>(site)], site);
    if (std::ssize(n_.site_links) > kMostSiteLinks)
      fail(list_,
           fmt::format("{} links are more than {}; join sites over others", n_.site_links.size(), kMostSiteLinks));
    for (std::int64_t site = 1; site < count; ++site) {
      if (way_between_sites(n_, 0, site).empty())
        fail(list_,
             fmt::format("no links join sites 0 and {}; give site {} to: {{0: {{Gbps: 12800, ms: 5}}}}", site, site));
    }
  }

 private:
  [[noreturn]] void fail(const SpecNode& node, const std::string& what) const { reader_.fail(node, kSitesKey, what); }

  void read_site(const SpecNode& item, std::int64_t site) {
    const SpecSection section(reader_, &item, std::string(kSitesKey), kSiteKeys);
    for (const std::string_view key : {"Gbps", "ms", "buffer_MiB"}) {
      if (const SpecNode* node = section.find(key); node != nullptr)
        reader_.fail(*node, section.name(key),
                     "in a list of sites it is of a link to one other: give to: {0: {Gbps: 12800, ms: 5}}");
    }
    if (section.find("nodes") == nullptr) reader_.fail(item, section.name("nodes"), "missing");
    section.take_count("nodes", n_.site_sizes.emplace_back(), kMostRanks);
    const SpecNode* to = section.find("to");
    if (to == nullptr) return;
    if (to->kind != SpecNode::Kind::map)
      reader_.fail(*to, section.name("to"), "links by the numbers of sites are needed here: {0: {Gbps: 12800, ms: 5}}");
    for (std::size_t i = 0; i < to->keys.size(); ++i) read_link(to->items[i], to->keys[i], site);
  }

  void read_link(const SpecNode& node, const std::string& key, std::int64_t site) {
    SpecNode number;
    number.kind = SpecNode::Kind::scalar;
    number.line = node.line;
    number.text = key;
    SiteLink link = {.from = site};
    const std::string name = fmt::format("{}.to", kSitesKey);
    convert(reader_, number, name, link.to);
    if (link.to < 0 || link.to >= std::ssize(list_.items) || link.to == site)
      reader_.fail(node, name, fmt::format("{} is no other site of {}", link.to, list_.items.size()));
    const bool known = std::ranges::any_of(n_.site_links, [&](const SiteLink& l) {
      return (l.from == site && l.to == link.to) || (l.from == link.to && l.to == site);
    });
    if (known) reader_.fail(node, name, fmt::format("sites {} and {} are joined twice", site, link.to));
    const SpecSection section(reader_, &node, fmt::format("{}.{}", name, link.to), kLinkKeys);
    for (const std::string_view needed : {"Gbps", "ms"}) {
      if (section.find(needed) == nullptr) reader_.fail(node, section.name(needed), "missing");
    }
    section.take("Gbps", link.Gbps);
    section.take("ms", link.ms);
    section.take("buffer_MiB", link.buffer_MiB);
    if (!(link.ms >= 0)) reader_.fail(node, section.name("ms"), fmt::format("{} is no time", link.ms));
    n_.site_links.push_back(link);
  }

  SpecReader& reader_;
  const SpecNode& list_;
  Network& n_;
};

// Light goes around half the Earth in 100 ms of fibre.
constexpr double kMost_ms = 1000;

Broken link_rules(double Gbps, double ms, double buffer_MiB) {
  if (!(buffer_MiB > 0))
    return broken("cluster.network.sites.buffer_MiB", "cluster.network.sites.buffer_MiB: {} is no size of a buffer",
                  buffer_MiB);
  if (!(Gbps > 0))
    return broken("cluster.network.sites.Gbps", "cluster.network.sites.Gbps: {} is no rate of a link", Gbps);
  if (!(ms >= 0 && ms <= kMost_ms))
    return broken("cluster.network.sites.ms", "cluster.network.sites.ms: {} is no time from 0 to 1,000", ms);
  return {};
}

}  // namespace

void read_sites(const SpecSection& network, Network& n) {
  const SpecNode* node = network.find("sites");
  if (node == nullptr) return;
  if (node->kind == SpecNode::Kind::list) return SiteList(network.reader(), *node, n).read();
  const SpecSection sites(network.reader(), node, std::string(kSitesKey), kSiteKeys);
  for (const std::string_view key : {"nodes", "Gbps", "ms"}) {
    if (sites.find(key) == nullptr) network.reader().fail(*node, sites.name(key), "missing");
  }
  if (const SpecNode* to = sites.find("to"); to != nullptr)
    network.reader().fail(*to, sites.name("to"),
                          "it needs a list of sites: [{nodes: 1024}, {nodes: 512, to: {0: ...}}]");
  sites.take_count("nodes", n.site_nodes, kMostRanks);
  sites.take("Gbps", n.site_Gbps);
  sites.take("ms", n.site_ms);
  sites.take("buffer_MiB", n.site_buffer_MiB);
}

Broken site_rules(const Cluster& c) {
  const Network& n = *c.network;
  if (n.site_nodes > 0) {
    if (const Broken wrong = link_rules(n.site_Gbps, n.site_ms, n.site_buffer_MiB); !wrong.key.empty()) return wrong;
  }
  for (const SiteLink& link : n.site_links) {
    if (const Broken wrong = link_rules(link.Gbps, link.ms, link.buffer_MiB); !wrong.key.empty()) return wrong;
  }
  const std::int64_t all = std::accumulate(n.site_sizes.begin(), n.site_sizes.end(), std::int64_t{0});
  if (!n.site_sizes.empty() && all != c.nodes)
    return broken("cluster.network.sites.nodes", "cluster.network.sites.nodes: the sites have {} nodes, the cluster {}",
                  all, c.nodes);
  if (c.nvlink_domain <= c.gpus_per_node) return {};
  std::vector<std::int64_t> sizes = n.site_sizes;
  if (n.site_nodes > 0) sizes.push_back(n.site_nodes);
  for (const std::int64_t nodes : sizes) {
    if (nodes * c.gpus_per_node % c.nvlink_domain != 0)
      return broken("cluster.network.sites.nodes",
                    "cluster.network.sites.nodes: {} nodes part an NVLink domain of {} GPUs", nodes, c.nvlink_domain);
  }
  return {};
}

}  // namespace orrery
