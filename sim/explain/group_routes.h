#pragma once

#include "sim/predict/predict.h"
#include "sim/print/section.h"

namespace orrery {

// A table of the links over which groups communicate: for each dimension, the way from the first member of rank 0's
// group to the second, on the nodes and over the switches that cluster.network gives the job, with its rate without
// protocol overhead; and the slowest way from one member to the next, if another is slower. Lines below say what the
// rates and latencies leave out. A row:
//   data | 128 | gpu 0 - pcie_switch 0.0 - nic 0.0 - leaf 0 - nic 1.0 - pcie_switch 1.0 - gpu 8 | 50.0 | 2.7
Section group_routes(const Prediction& prediction);

}  // namespace orrery
