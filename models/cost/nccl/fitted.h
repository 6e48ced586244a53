#pragma once

#include <array>

namespace orrery {

// The kinds of nodes by the links among their GPUs: NVLink of Ampere and before, of Hopper, of Blackwell; PCIe.
enum class NodeKind { sm80, sm90, sm100, pcie };
inline constexpr int kNodeKinds = 4;

// The times and rates of NCCL's kernels among the GPUs of one node (one_node.h), one after another, measured by
// nccl-tests in one process: 2 to 8 GPUs of A100, H100, H200, B200, B300, GB200, GB300; PCIe: L40S and RTX PRO 6000
// (github.com/ai-dynamo/aiconfigurator @095f58a5, the tables of NCCL; `validate --kernels` judges each fifth shape,
// which was not fitted). Rates of buffers above 512 MiB are those of ml-engineering's and OCI's sweeps
// (tests/data/nccl_sweeps.json).
struct NcclOnOneNode {
  double start_us = 0;       // start and end of a kernel
  double hop_us = 0;         // a step from GPU to GPU of protocol LL
  double ll_part = 1;        // fraction of NCCL's bandwidth of LL that rings of many steps reach
  double ring_part = 1;      // the same of LL128 and Simple
  double exchange_GBps = 0;  // what all channels of an all-to-all carry, a rank's own part included
};

// Numbers of NCCL's and RCCL's collectives that are fitted to measured ones, from models/data/fitted.json
// (collectives).
struct FittedCollectives {
  // Microseconds that a collective of a step, or of processes that each launch their own, takes beyond its kernel: its
  // stream waits for the stream of compute, compute for it, and the ranks do not start at once. From launch to launch
  // an all-reduce of a few bytes on 8 A100 takes 20-26 us under mpirun, which is 5-11 us more than NCCL's 15
  // (nccl-tests). Under PyTorch an all-reduce takes 20-30 us more: that is host time, which is counted elsewhere.
  double start_us;
  std::array<NcclOnOneNode, kNodeKinds> one_node;
  // Numbers of all kernels on one node (one_node.h). ring_end: the steps that copying a rank's own part and unpacking
  // the last one add to a ring. flags_us: what kernels of LL128 and Simple take in addition to those of LL. wide_block:
  // fraction of a hop that each doubling of a block's threads adds. next_peer: fraction of a hop that each further peer
  // of an all-to-all adds. ll_send_part: fraction of a ring's rate of LL that a channel of sends reaches.
  double ring_end, flags_us, wide_block, next_peer, ll_send_part;
  // The rate of an all-reduce in NVSwitches (NVLS), of which NCCL's model knows what its search over speeds finds. The
  // switches fetch the whole buffer from every GPU, and each of h heads sends the sum of its part back to them to be
  // copied: a GPU's NVLink carries 1 + 1/h of the buffer each way, at nvls_link_part of its rate: on H200 with 8 GPUs
  // 480 GB/s over 2 (n - 1) / n; held out, with 7 and 6 GPUs 460 and 436. And a channel reduces nvls_channel_GBps: on
  // B200 with 24 channels 741 GB/s over 2 (n - 1) / n, up to 4 GiB; held out, 72 GB200 as fast (ml-engineering,
  // network/README.md; CoreWeave's nccl-tests).
  double nvls_link_part, nvls_channel_GBps;
  // Fraction of NCCL's NVLink speed that all-to-all reaches. NVIDIA GTC25 S72583: A100 210 of 240 GB/s, H100 320 of
  // 370.8, B200 640 of 721.8; OCI: GB200, 2 hosts of one rack, 658 of 721.8. These fractions are between .863 and .912.
  double nvlink_to_all_part;
  // Fraction of the NICs' speed that sends reach: 46-49 of 50 GB/s per NDR NIC, which NCCL counts as 48
  // (NVIDIA/nccl-tests issues 267 and 290).
  double nic_part;
  // Fraction of the NICs' speed that an all-to-all reaches, which shares the fabric with all other traffic: 41-46 GB/s
  // per NIC, which NCCL counts as 48: OCI GB200, 2 racks 45.2, 3 racks 41.9; 2 nodes of RTX 6000D 45.8. The number is
  // the mean of these fractions.
  double nic_to_all_part;
  // The largest rate over NICs, GB/s per GPU, of an all-to-all in which a GPU has many peers on other nodes. No
  // measurement with more peers on other nodes than a node has GPUs exceeds 45.2 GB/s a GPU (OCI GB200, 2 racks), even
  // with NICs of 800 Gb/s (OCI GB300, 2 racks of 64: 23.8); with 8 peers on other nodes, NICs of 800 Gb/s reach 96.5
  // (OCI B300, 2 nodes).
  double most_to_many_peers_GBps;
  // Fraction of the rate of rings over direct links that all-to-all over them reaches: 42.1 GB/s a link on MI300-class
  // GPUs, where rings reach 46.0, and 51.6 of 58.2 on MI355X (rccl-tests on 8 GPUs; OCI, MI355X quick start).
  double links_to_all_part;
  // The part of the NICs' rate, as NCCL counts it (48 GB/s for 400 Gb/s), that rings over several nodes reach: 46.9
  // GB/s a NIC on two nodes of MI300X, 46.1 to 46.3 on two and four of MI355X (all-reduce of 8 and 16 GiB by
  // rccl-tests; OCI's quick starts, github.com/oracle-quickstart/oci-gpu-quickstarts).
  double rccl_nic_part;
};

const FittedCollectives& fitted_collectives();

}  // namespace orrery
