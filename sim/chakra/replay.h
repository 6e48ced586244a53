#pragma once

#include <string>
#include <vector>

#include "models/base/units.h"
#include "models/spec/cluster.h"
#include "sim/chakra/execution_trace.h"

namespace orrery {

// The times in seconds of one rank in a replayed trace. end: time when its last operation ends; compute: time in which
// it computes; exposed: time in which it communicates and does not compute.
struct ReplayedRank {
  Seconds end = 0, compute = 0, exposed = 0;
};

struct ChakraReplay {
  Seconds time = 0;  // seconds until the last rank has ended
  std::vector<ReplayedRank> ranks;
  // Numbers of operations in the traces, and of the collectives and messages that these operations form.
  std::size_t nodes = 0, collectives = 0, messages = 0;
  std::vector<std::string> remarks;
};

// Simulates Chakra execution traces (traces[i] is that of rank i) on a cluster whose nodes the ranks fill in order. An
// operation begins when the operations that it waits for have ended; a rank's device, and its host, compute one
// operation at a time in the order in which the operations become ready. Compute lasts as long as the trace says; if
// the trace gives no duration, the rates of the cluster's GPU give one for the operations and bytes. A collective
// begins when all ranks of its process group have reached it (the i-th collective of each rank belongs to the i-th of
// all others), and a process group makes one at a time; its time is that of NCCL's own choice of algorithm for the
// nodes on which the ranks are. A message begins when both its ranks have reached it. Transfers that run at the same
// time slow neither each other nor compute. Throws Error for ranks that wait for each other in a circle, for sends and
// receives that do not agree, and for more ranks than GPUs.
ChakraReplay replay(const std::vector<ChakraTrace>& traces, const Cluster& cluster);

}  // namespace orrery
