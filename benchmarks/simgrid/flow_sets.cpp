#include "benchmarks/simgrid/flow_sets.h"

#include <map>
#include <utility>

namespace orrery::flows {
namespace {

struct Random {
  std::uint64_t counter = 0;
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>((mixed(++counter) >> 32) * n >> 32); }
};

// Adds flows and, where a pair of hosts is new, its route.
class Builder {
 public:
  Builder(FatTree tree, std::string name) : tree_(tree) {
    set_.name = std::move(name);
    set_.hosts = tree.hosts;
    set_.links = tree.links();
  }
  void chain() { set_.chains.push_back(static_cast<std::uint32_t>(set_.flows.size())); }
  void flow(std::uint32_t source, std::uint32_t destination, std::int64_t bytes) {
    const auto [it, fresh] =
        numbers_.try_emplace({source, destination}, static_cast<std::uint32_t>(set_.routes.size()));
    if (fresh) set_.routes.push_back(tree_.route(source, destination));
    set_.flows.push_back({it->second, bytes});
  }
  FlowSet done() {
    chain();
    return std::move(set_);
  }

 private:
  FatTree tree_;
  FlowSet set_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers_;
};

std::int64_t random_bytes(Random& random) { return 1'000'000 + random.below(9'000'000); }

}  // namespace

Route FatTree::route(std::uint32_t source, std::uint32_t destination) const {
  const std::uint32_t from = source / kLeaf, to = destination / kLeaf;
  Route route{source, destination, {source}};
  if (from != to) {
    const std::uint64_t pair = static_cast<std::uint64_t>(source) << 32 | destination;
    const auto spine = static_cast<std::uint32_t>((hashed ? mixed(pair) : destination) % kSpines);
    route.links.push_back(2 * hosts + from * kSpines + spine);
    route.links.push_back(2 * hosts + hosts / kLeaf * kSpines + to * kSpines + spine);
  }
  route.links.push_back(hosts + destination);
  return route;
}

FlowSet ring(std::uint32_t hosts, std::uint32_t rounds) {
  Builder builder({hosts}, "ring " + std::to_string(hosts));
  for (std::uint32_t host = 0; host < hosts; ++host) {
    builder.chain();
    for (std::uint32_t i = 0; i < rounds; ++i) builder.flow(host, (host + 1) % hosts, 1 << 16);
  }
  return builder.done();
}

FlowSet all_to_all(std::uint32_t hosts, bool uneven) {
  Builder builder({hosts}, (uneven ? "uneven all-to-all " : "all-to-all ") + std::to_string(hosts));
  Random random;
  for (std::uint32_t host = 0; host < hosts; ++host) {
    for (std::uint32_t hop = 1; hop < hosts; ++hop) {
      const std::int64_t bytes = (1 << 26) / hosts;
      builder.chain();
      builder.flow(host, (host + hop) % hosts, uneven ? bytes * (500 + random.below(1000)) / 1000 : bytes);
    }
  }
  return builder.done();
}

FlowSet random_pairs(std::uint32_t hosts, std::uint32_t count, bool hashed) {
  Builder builder({hosts, hashed}, "random " + std::to_string(hosts) + (hashed ? ", hashed" : ""));
  Random random;
  for (std::uint32_t host = 0; host < hosts; ++host) {
    builder.chain();
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t other = (host + 1 + random.below(hosts - 1)) % hosts;
      builder.flow(host, other, random_bytes(random));
    }
  }
  return builder.done();
}

FlowSet two_links(std::uint32_t links, std::uint32_t chains, std::uint32_t count) {
  FlowSet set;
  set.name = std::to_string(chains) + " flows x 2 of " + std::to_string(links) + " links";
  set.links = links;
  Random random;
  for (std::uint32_t chain = 0; chain < chains; ++chain) {
    set.chains.push_back(static_cast<std::uint32_t>(set.flows.size()));
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t first = chain % links;
      set.flows.push_back({static_cast<std::uint32_t>(set.routes.size()), random_bytes(random)});
      set.routes.push_back({0, 0, {first, (first + 1 + random.below(links - 1)) % links}});
    }
  }
  set.chains.push_back(static_cast<std::uint32_t>(set.flows.size()));
  return set;
}

}  // namespace orrery::flows
