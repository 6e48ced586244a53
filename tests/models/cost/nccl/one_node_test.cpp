#include "models/cost/nccl/one_node.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace {

NcclModel model_of(const char* node, int ranks, std::int64_t nccl_minor = 28) {
  NcclTopology t = nccl_topology(find_cluster(node, 1), 1, ranks);
  t.nccl_minor = nccl_minor;
  return nccl_model(t);
}

using K = CollectiveKind;

// Kernels of nccl-tests in one process, launched one after another (github.com/ai-dynamo/aiconfigurator @095f58a5,
// Apache-2.0), of each kind, protocol and number of ranks a few; fitted and not fitted ones.
struct Kernel {
  const char* node;
  K kind;
  int ranks;
  std::int64_t nccl_minor;
  Bytes bytes;
  double us;
};
constexpr Bytes kKiB = 1 << 10, kMiB = 1 << 20;
constexpr Kernel kKernels[] = {
    {"dgx-a100", K::all_reduce, 8, 27, 2 * kKiB, 21.53},       {"dgx-a100", K::all_gather, 2, 27, 1 * kMiB, 19.95},
    {"dgx-a100", K::reduce_scatter, 8, 27, 256 * kMiB, 1150},  {"dgx-a100", K::all_to_all, 2, 27, 1 * kMiB, 22.79},
    {"dgx-a100", K::all_to_all, 8, 27, 256 * kMiB, 1198},      {"dgx-h100", K::all_gather, 2, 29, 1 * kKiB, 5.24},
    {"dgx-h100", K::all_gather, 8, 29, 2 * kMiB, 22.04},       {"dgx-h100", K::reduce_scatter, 4, 29, 32 * kMiB, 104.9},
    {"dgx-h100", K::all_reduce, 2, 29, 64 * kMiB, 253},        {"dgx-h100", K::all_reduce, 8, 29, 32 * kKiB, 18.44},
    {"dgx-h100", K::all_to_all, 8, 29, 8 * kKiB, 7.53},        {"dgx-h100", K::all_to_all, 4, 29, 1 * kMiB, 15.56},
    {"dgx-h100", K::all_to_all, 2, 29, 256 * kMiB, 498.8},     {"dgx-b200", K::all_gather, 8, 28, 1 * kKiB, 16.87},
    {"dgx-b200", K::reduce_scatter, 2, 28, 256 * kKiB, 10.12}, {"dgx-b200", K::all_gather, 8, 28, 256 * kMiB, 397.6},
    {"dgx-b200", K::all_to_all, 4, 28, 1 * kMiB, 16.63},       {"dgx-b200", K::all_to_all, 4, 29, 512 * kMiB, 823.4}};

TEST(NcclOnOneNode, PredictsMeasuredKernels) {
  std::vector<double> errors;
  for (const Kernel& k : kKernels) {
    const NcclModel m = model_of(k.node, k.ranks, k.nccl_minor);
    const double us = 1e6 * nccl_kernel(m, k.kind, nccl_choose(m, k.kind, k.bytes), k.bytes);
    EXPECT_NEAR(us / k.us, 1, 0.17) << k.node << ' ' << name_of(k.kind) << ' ' << k.ranks << ' ' << k.bytes;
    errors.push_back(std::abs(us / k.us - 1));
  }
  std::nth_element(errors.begin(), errors.begin() + std::ssize(errors) / 2, errors.end());
  EXPECT_LT(errors[errors.size() / 2], 0.07);
}

// A step waits for another stream, and for the other ranks, before the kernel.
TEST(NcclOnOneNode, StepsTakeLongerThanKernels) {
  const NcclModel m = model_of("dgx-h100", 8);
  const NcclChoice c = nccl_choose(m, K::all_gather, kMiB);
  EXPECT_NEAR(c.seconds - nccl_kernel(m, K::all_gather, c, kMiB), nccl_step_start(m), 1e-12);
  EXPECT_GT(nccl_step_start(m), 0);
}

// Copying a rank's own part weighs the more the fewer steps a ring has, while NCCL's own rate is the same.
TEST(NcclOnOneNode, ShortRingsAreSlower) {
  const auto bus_GBps = [](int ranks) {
    const Bytes bytes = Bytes{64} << 30;
    const double seconds = ring_on_one_node(model_of("dgx-h100", ranks), K::all_gather, NcclProtocol::simple, bytes);
    return static_cast<double>(bytes) * (ranks - 1) / ranks / seconds * 1e-9;
  };
  EXPECT_LT(bus_GBps(2), 0.8 * bus_GBps(4));
  EXPECT_LT(bus_GBps(4), bus_GBps(8));
}

// The part that a rank sends to itself passes the channels too: with two ranks NVLink does not bind, with eight it
// does.
TEST(NcclOnOneNode, ExchangesAreBoundByChannelsOrNvlink) {
  const auto seconds = [](int ranks) { return exchange_on_one_node(model_of("dgx-h100", ranks), Bytes{16} << 30); };
  EXPECT_LT(seconds(2), seconds(8));
  EXPECT_GT(seconds(2), seconds(8) * (1.0 / 2) / (7.0 / 8));
}

// NCCL 2.29 sends with LL what has at most 16 KiB; before, what has so much for each channel.
TEST(NcclOnOneNode, NewerReleasesLeaveLlEarlier) {
  const NcclTopology now = model_of("dgx-b200", 8, 29).topology, before = model_of("dgx-b200", 8, 28).topology;
  EXPECT_TRUE(exchange_is_ll(now, 16 * kKiB));
  EXPECT_FALSE(exchange_is_ll(now, 16 * kKiB + 1));
  EXPECT_TRUE(exchange_is_ll(before, 512 * kKiB));
  EXPECT_FALSE(exchange_is_ll(before, 512 * kKiB + 1));
  EXPECT_EQ(nccl_all_to_all(model_of("dgx-b200", 8, 29), kMiB).protocol, NcclProtocol::simple);
  EXPECT_EQ(nccl_all_to_all(model_of("dgx-b200", 8, 28), kMiB).protocol, NcclProtocol::ll);
}

}  // namespace
}  // namespace orrery
