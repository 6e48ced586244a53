#pragma once

#include <string>
#include <vector>

#include "models/base/units.h"
#include "models/spec/cluster.h"
#include "sim/chakra/execution_trace.h"

namespace orrery {

// The times of one rank in a replayed workload: until its last node ends; while it computes; while it communicates and
// does not compute.
struct ReplayedRank {
  Seconds end = 0, compute = 0, exposed = 0;
};

struct ChakraReplay {
  Seconds time = 0;  // until the last rank has ended
  std::vector<ReplayedRank> ranks;
  std::size_t nodes = 0, collectives = 0, messages = 0;  // numbers of nodes, and of transfers that ranks make together
  std::vector<std::string> remarks;
};

// Plays execution traces, traces[i] of rank i, on a cluster whose nodes the ranks fill in order. A node begins when the
// nodes that it waits for have ended; compute of a rank, and of a rank's host, runs one node at a time in the order in
// which nodes become ready. Compute lasts as long as its trace says, else as its operations and bytes take at the
// cluster's GPU's rates. A collective begins when all ranks of its group have come to it, the i-th of each rank meeting
// the i-th of the others, and groups make one at a time; its time is that of NCCL's own choice for the nodes on which
// the ranks lie. A message begins when both ends have come to it. Transfers that run at once do not slow each other,
// nor compute. Throws Error for ranks that wait for each other for ever, ends that do not agree, or more ranks than
// GPUs.
ChakraReplay replay(const std::vector<ChakraTrace>& traces, const Cluster& cluster);

}  // namespace orrery
