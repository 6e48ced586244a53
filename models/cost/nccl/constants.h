#pragma once

#include <array>
#include <cstddef>

#include "models/base/units.h"
#include "models/cost/nccl/model.h"

// Constants of NCCL 2.28.9's source: latencies, and what bounds sends.
namespace orrery {

// Latencies in microseconds: one row per NCCL algorithm (tree, ring, nvls, nvls_tree, pat), one column per protocol
// (LL, LL128, Simple). Source: src/graph/tuning.cc, ncclTunerConstantsDefaults.
using NcclLatencies = std::array<std::array<double, kNcclProtocols>, kNcclAlgorithms>;

// The start of a kernel, and one hop over NVLink, PCIe and the network
inline constexpr NcclLatencies kNcclStart_us = {{{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}, {0, 0, 0}, {0, 0, 0}, {8, 8, 8}}};
inline constexpr NcclLatencies kNcclNvlink_us = {
    {{.6, 1.25, 4.0}, {.6, 1.9, 3.4}, {0, 0, 25}, {0, 0, 25}, {0, 0, 4.0}}};
inline constexpr NcclLatencies kNcclPcie_us = {{{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}, {0, 0, 0}, {0, 0, 0}, {0, 0, 4.0}}};
inline constexpr NcclLatencies kNcclNet_us = {{{5.0, 8.5, 14}, {2.7, 4.0, 14.0}, {0, 0, 18}, {0, 0, 20.9}, {0, 0, 14}}};

constexpr double nccl_us(const NcclLatencies& latencies, NcclAlgorithm a, NcclProtocol p) {
  return latencies[static_cast<std::size_t>(a)][static_cast<std::size_t>(p)];
}

// Returns a latency of rings, which sends and receives share.
constexpr double nccl_ring_us(const NcclLatencies& latencies, NcclProtocol p) {
  return nccl_us(latencies, NcclAlgorithm::ring, p);
}

// Greatest number of bytes per channel that NCCL sends to a peer with the protocol LL (NCCL_P2P_LL_THRESHOLD,
// enqueue.cc)
inline constexpr Bytes kLlBytesPerSendChannel = 16 << 10;
// Largest number of channels of all sends together (paths.cc, ncclTopoComputeP2pChannels): "32 p2p channels" in logs of
// 8-GPU A100 and H100 nodes
inline constexpr int kMaxSendChannels = 32;
// Bytes of a chunk of a send with the protocol Simple, over NVLink and over NICs or PCIe (init.cc)
inline constexpr Bytes kNvlinkSendChunk = 512 << 10, kNetSendChunk = 128 << 10;

}  // namespace orrery
