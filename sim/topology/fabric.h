#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/spec/network.h"

namespace orrery {

// The links of a fabric as ibnetdiscover prints them, and the forwarding tables of its switches. Ports and switches
// have local identifiers (LIDs), by which both files name them; 0: not known.
struct FabricLinks {
  struct Port {
    std::string host;  // name of the host at the other end; "" if it is a switch
    std::string peer;  // identifier of the switch at the other end; "" if it is a host
    int lid = 0;       // of the other end
    double Gbps = 0;
    std::string device = {};  // the host's, "mlx5_3"; "" if the file does not say it
  };
  struct Switch {
    std::string id, name;
    int lid = 0;
    std::map<int, Port> ports;  // by number
  };
  std::vector<Switch> switches;
  std::map<int, std::map<int, int>> tables;  // for the LID of a switch, the port by which it sends to each LID
};

// The routes of a fabric, and whether they are as even as its leaves say.
struct FabricRoutes {
  FabricGraph graph;               // nodes in the order that was asked for
  bool regular = false;            // whether leaves are alike, and evenly used ones as full as their uplinks say
  std::int64_t routes = 0;         // routes of the tables from a leaf to a NIC of another
  std::int64_t longer = 0;         // of these, those that are not shortest, or lead nowhere
  double table_load = 1;           // load of the fullest link by the tables over that by all shortest ways, evenly used
  std::vector<std::string> nodes;  // names of the nodes of `graph`
};

// Finds the routes of a fabric whose nodes have `nics` NICs. Every leaf sends as much to every NIC beyond it. Nodes
// with another number of NICs are left out. Where there are tables, links that these fill more than an even use of all
// shortest ways would are given so much less rate in `graph`, by which times along them are those of the tables.
// nullopt: the fabric has no links between switches, or no node.
std::optional<FabricRoutes> fabric_routes(const FabricLinks& fabric, const std::vector<std::string>& nodes,
                                          std::int64_t nics);

}  // namespace orrery
