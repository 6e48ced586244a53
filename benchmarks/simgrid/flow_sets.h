#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace orrery::flows {

inline constexpr double kBytesPerSecond = 50e9;          // of every link: 400 Gb/s
inline constexpr std::int64_t kPicosecondsPerByte = 20;  // at this bandwidth

struct Route {
  std::uint32_t source = 0;       // number of the host that sends
  std::uint32_t destination = 0;  // number of the host that receives
  std::vector<std::uint32_t> links;
};

struct Flow {
  std::uint32_t route = 0;
  std::int64_t bytes = 0;
};

// Flows over links of equal bandwidth and no latency. A chain is a range of flows each of which starts when the flow
// before it has ended; all chains start at time 0.
struct FlowSet {
  std::string name;
  std::uint32_t hosts = 0;
  std::uint32_t links = 0;
  std::vector<Route> routes;
  std::vector<Flow> flows;
  std::vector<std::uint32_t> chains;  // index of the first flow of each chain, and the number of flows at the end

  std::uint32_t chain_count() const { return static_cast<std::uint32_t>(chains.size()) - 1; }
};

// Mixes the bits of a number: splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
inline std::uint64_t mixed(std::uint64_t z) {
  z *= 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// Fat tree of two levels: leaves of 32 hosts, each of which has a link to each of 16 spines, so that the leaves' links
// upward have half the bandwidth of the hosts' links. Links carry one direction.
struct FatTree {
  static constexpr std::uint32_t kLeaf = 32;
  static constexpr std::uint32_t kSpines = 16;

  std::uint32_t hosts = 0;
  bool hashed = false;  // whether a flow's spine is a hash of both hosts, not the destination modulo 16 (D-mod-k)

  std::uint32_t links() const { return 2 * hosts + 2 * hosts / kLeaf * kSpines; }
  Route route(std::uint32_t source, std::uint32_t destination) const;
};

// Every host sends `rounds` messages of 64 KiB to the next host, one after the other.
FlowSet ring(std::uint32_t hosts, std::uint32_t rounds);
// Every host sends 64 MiB / hosts to each other host, all at once; uneven: each message is 0.5 to 1.5 times as long.
FlowSet all_to_all(std::uint32_t hosts, bool uneven);
// Every host sends `count` messages of 1 to 10 MB to random hosts, one after the other.
FlowSet random_pairs(std::uint32_t hosts, std::uint32_t count, bool hashed);
// `chains` chains of `count` messages of 1 to 10 MB, each over two random links of `links`. The set has no hosts.
FlowSet two_links(std::uint32_t links, std::uint32_t chains, std::uint32_t count);

}  // namespace orrery::flows
