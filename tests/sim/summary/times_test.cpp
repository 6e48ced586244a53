#include "sim/summary/times.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace orrery {
namespace {

class Device {
 public:
  // Adds a kernel of a class; launched: ns from the end of the launch to the begin.
  Device& add(std::int64_t begin, std::int64_t end, const char* name, std::uint32_t launched = kNotKnown) {
    KernelRecord k;
    k.begin = begin;
    k.end = end;
    k.launch = launched;
    k.name = names_.kernel(name, "");
    records_.kernels.push_back(k);
    return *this;
  }
  Device& wait(std::int64_t begin, std::int64_t end) {
    add(begin, end, "wait");
    records_.kernels.back().waits = true;
    return *this;
  }
  DeviceTimes times(const std::optional<StepTimes>& steps = {}) const {
    return device_times(records_, 0, records_.kernels.size(), names_, steps);
  }

 private:
  TraceRecords records_;
  TraceNames names_;
};

TEST(Times, CommunicationIsExposedWhereNothingComputes) {
  const DeviceTimes t =
      Device().add(0, 100, "gemm").add(50, 200, "ncclKernel").add(180, 190, "gemm").add(150, 260, "Memcpy").times();
  EXPECT_EQ(t.window, 260);
  EXPECT_EQ(t.compute, 110);
  EXPECT_EQ(t.communication, 150);
  EXPECT_EQ(t.exposed_communication, 90);
  EXPECT_EQ(t.copy, 110);
  EXPECT_EQ(t.exposed_copy, 60);
  EXPECT_EQ(t.idle(), 0);
}

TEST(Times, IdleTimeHasACause) {
  const DeviceTimes t = Device()
                            .add(0, 1000, "gemm")
                            .add(3000, 4000, "gemm", 10'000)     // launched in time, 2 us later: the device's own gap
                            .add(20'000, 21'000, "gemm", 5'000)  // launched 11 us after the device went idle
                            .add(51'000, 52'000, "gemm")         // launch not known, 30 us
                            .wait(52'000, 60'000)
                            .add(60'000, 61'000, "ncclKernel")
                            .times();
  EXPECT_EQ(t.idle_kernel, 2000);
  EXPECT_EQ(t.idle_host, 16'000);
  EXPECT_EQ(t.idle_other, 30'000);
  EXPECT_EQ(t.idle_peers, 8000);
  EXPECT_EQ(t.busy() + t.idle(), t.window);
}

TEST(Times, StepsWidenTheWindow) {
  const StepTimes steps{.count = 1, .begin = -500, .end = 2000, .sum = 2500};
  const DeviceTimes t = Device().add(0, 1000, "gemm", 100).times(steps);
  EXPECT_EQ(t.window, 2500);
  EXPECT_EQ(t.idle_host, 500);
  EXPECT_EQ(t.idle_other, 1000);
}

// The parts of random kernels sum to the window, and agree with a count of every nanosecond.
TEST(Times, PartsSumToTheWindow) {
  std::mt19937 random(5);
  static constexpr const char* kNames[] = {"gemm", "ncclKernel", "Memcpy"};
  for (int round = 0; round < 50; ++round) {
    Device device;
    std::vector<int> layer(600, 9);
    std::int64_t begin = 0;
    for (int i = 0; i < 30; ++i) {
      begin += random() % 15;
      const auto end = begin + static_cast<std::int64_t>(random() % 30);
      const int kind = static_cast<int>(random() % 3);
      device.add(begin, end, kNames[kind]);
      for (std::int64_t at = begin; at < end; ++at)
        layer[static_cast<std::size_t>(at)] = std::min(layer[static_cast<std::size_t>(at)], kind);
    }
    const DeviceTimes t = device.times();
    EXPECT_EQ(t.busy() + t.idle(), t.window);
    EXPECT_EQ(t.compute, std::ranges::count(layer, 0));
    EXPECT_EQ(t.exposed_communication, std::ranges::count(layer, 1));
    EXPECT_EQ(t.exposed_copy, std::ranges::count(layer, 2));
  }
}

}  // namespace
}  // namespace orrery
