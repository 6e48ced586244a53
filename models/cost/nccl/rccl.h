#pragma once

#include "models/cost/nccl/model.h"

namespace orrery {

// RCCL, AMD's NCCL, on nodes whose GPUs have a direct link for every pair (xGMI, NcclTopology::link_GBps) instead of a
// switch. In a group of m GPUs of a node, rings run over all m - 1 links of each GPU at the same time, so that a group
// of two has the rate of one link, and eight GPUs that of seven. (A MI250X has fewer links than its node has other
// GPUs: there a group of any size has the rate of all links of a GPU; graph.cpp, set_direct_links.) A direct exchange
// (every rank with every other) uses the same links equally, and so takes the same time for long messages; only its
// start differs. Rings over several nodes enter and leave a node by the NICs, and hand on m - 1 of m parts over the
// links.

// Returns whether a communicator's ranks are joined by direct links, or alone on nodes of such GPUs.
inline bool is_rccl(const NcclTopology& t) { return t.link_GBps > 0; }

// Returns the rings: the number of channels, and the GB/s of each inside and between nodes.
NcclGraphs rccl_graphs(const NcclTopology& topology);

// Returns the table with RCCL's ring and protocol Simple as the only choice: AMD's training scripts set
// NCCL_PROTO=Simple and turn off other algorithms (ROCm/Megatron-LM, examples/llama/train_llama3.sh). Rates are those
// that measurements reach.
NcclTable rccl_table(const NcclTopology& topology);

// The time until the first byte of an exchange of every rank with every other, microseconds.
double rccl_exchange_start_us();
// The time until the first byte of a send, microseconds.
double rccl_send_start_us();

}  // namespace orrery
