// The sensors of the null GPU, read through its stand-in for NVML.
#include "exec/cuda/sensors.h"

#include <dlfcn.h>

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "exec/host/lanes.h"
#include "tests/exec/cuda/on_gpu.h"

namespace orrery {
namespace {

// The stand-in for NVML, as the executor loads it.
class Stand {
 public:
  Stand() : library_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {}
  ~Stand() {
    if (library_ != nullptr) ::dlclose(library_);
  }
  Stand(const Stand&) = delete;
  Stand& operator=(const Stand&) = delete;
  bool found() const { return library_ != nullptr; }
  void set_clock(double mhz) const { function<void(double)>("orrery_null_clock")(mhz); }
  int users() const { return function<int()>("orrery_null_users")(); }

 private:
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(library_, name));
  }
  void* library_;
};

class Sensing : public test::OnGpu {};

TEST_F(Sensing, ReadsClocksPowerAndWhatLimitsThem) {
  const Stand stand;
  ASSERT_TRUE(stand.found());
  {
    cuda::Sensors sensors(0);
    EXPECT_EQ(stand.users(), 1);
    const Picoseconds begin = host_now();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const Conditions c = sensors.since(begin, "a run");
    EXPECT_EQ(c.during, "a run");
    EXPECT_GE(c.samples, 3);
    EXPECT_EQ(c.sm_MHz, 1755);
    EXPECT_EQ(c.memory_MHz, 2619);
    EXPECT_NEAR(c.power_W, 650, 0.01);
    EXPECT_EQ(c.temperature_C, 61);
    EXPECT_EQ(c.limited_by, std::vector<std::string>{"power"});
    // Only what was read since then counts.
    stand.set_clock(1500);
    const Picoseconds later = host_now();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(sensors.since(later, "").sm_high_MHz, 1500);
    EXPECT_EQ(sensors.since(begin, "").sm_high_MHz, 1755);
    EXPECT_EQ(sensors.since(begin, "").sm_low_MHz, 1500);
    stand.set_clock(1755);
  }
  EXPECT_EQ(stand.users(), 0);
}

// From a second on the power is the energy counter's, over the time between its two readings.
TEST_F(Sensing, TakesTheMeanPowerFromTheEnergyOfALongRun) {
  cuda::Sensors sensors(0);
  const Picoseconds begin = host_now();
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  EXPECT_NEAR(sensors.since(begin, "").power_W, 650, 20);
}

}  // namespace
}  // namespace orrery
