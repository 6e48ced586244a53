#include <string>

#include <fmt/format.h>
#include <simgrid/s4u.hpp>

#include "benchmarks/simgrid/play.h"

namespace orrery::flows {
namespace {

namespace sg4 = simgrid::s4u;

// A zone with every route of the set. Full zones keep whole routes, so that D-mod-k and hashes are what we say.
std::vector<sg4::Host*> make_network(const FlowSet& set) {
  sg4::NetZone* zone = sg4::create_full_zone("network");
  std::vector<sg4::Host*> hosts;
  for (std::uint32_t i = 0; i < set.hosts; ++i) hosts.push_back(zone->create_host(fmt::format("h{}", i), 1e9)->seal());
  std::vector<const sg4::Link*> links;
  for (std::uint32_t i = 0; i < set.links; ++i)
    links.push_back(zone->create_link(fmt::format("l{}", i), kBytesPerSecond)->set_latency(0)->seal());
  for (const Route& route : set.routes) {
    std::vector<sg4::LinkInRoute> crossed;
    for (const std::uint32_t link : route.links) crossed.emplace_back(links[link]);
    zone->add_route(hosts[route.source]->get_netpoint(), hosts[route.destination]->get_netpoint(), nullptr, nullptr,
                    crossed, false);
  }
  zone->seal();
  return hosts;
}

// The actor of one host: starts the first flows of all its chains, and each next flow when the one before has ended.
void send_chains(const FlowSet& set, const std::vector<sg4::Host*>& hosts, std::span<const std::uint32_t> chains,
                 std::span<double> ends) {
  const auto start = [&](std::uint32_t i) {
    const Route& route = set.routes[set.flows[i].route];
    return sg4::Comm::sendto_async(hosts[route.source], hosts[route.destination],
                                   static_cast<std::uint64_t>(set.flows[i].bytes));
  };
  std::vector<sg4::CommPtr> comms;
  for (const std::uint32_t chain : chains) comms.push_back(start(set.chains[chain]));
  for (std::size_t c = 0; c < chains.size(); ++c) {
    for (std::uint32_t i = set.chains[chains[c]]; i < set.chains[chains[c] + 1]; ++i) {
      sg4::CommPtr comm = i == set.chains[chains[c]] ? comms[c] : start(i);
      comm->wait();
      ends[i] = comm->get_finish_time();
    }
  }
}

}  // namespace

// A set's chains must be one for each host or of one flow each: an actor waits for one chain after the other.
double play_simgrid(const FlowSet& set, std::span<double> ends) {
  std::vector<std::string> words{"flows_beside_simgrid", "--cfg=network/model:CM02", "--cfg=network/crosstraffic:0",
                                 "--log=root.threshold:warning"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  auto count = static_cast<int>(arguments.size());
  sg4::Engine engine(&count, arguments.data());
  const std::vector<sg4::Host*> hosts = make_network(set);
  std::vector<std::vector<std::uint32_t>> chains(set.hosts);
  for (std::uint32_t chain = 0; chain < set.chain_count(); ++chain)
    chains[set.routes[set.flows[set.chains[chain]].route].source].push_back(chain);
  for (std::uint32_t host = 0; host < set.hosts; ++host)
    sg4::Actor::create(fmt::format("a{}", host), hosts[host],
                       [&, host] { send_chains(set, hosts, chains[host], ends); });
  const double begin = processor_time();
  engine.run();
  return processor_time() - begin;
}

}  // namespace orrery::flows
