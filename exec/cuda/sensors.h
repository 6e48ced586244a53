#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "models/base/units.h"
#include "models/trace/conditions.h"

namespace orrery::cuda {

// Clocks, power and temperature of one GPU, which a separate thread reads every few milliseconds while this object
// lives. The readings come from NVML, which belongs to the driver and is loaded while the program runs; if NVML is not
// installed, nothing is known and nothing fails. Functions may be called by any thread.
class Sensors {
 public:
  explicit Sensors(int gpu);  // gpu: the GPU's number among those that CUDA shows
  ~Sensors();
  Sensors(const Sensors&) = delete;
  Sensors& operator=(const Sensors&) = delete;

  // Returns the GPU's clocks, power and temperature from a time `begin` of the host's clock (host_now(), lanes.h) until
  // now, computed from the readings in that time and one more reading now.
  Conditions since(Picoseconds begin, const std::string& during);

 private:
  class Nvml;
  struct Reading {
    Picoseconds at = 0;
    double sm_MHz = 0, memory_MHz = 0, power_W = 0, temperature_C = 0;
    double energy_J = -1;  // energy consumed since the driver was loaded, joules; below 0: not known
    unsigned long long reasons = 0;
  };
  void read();
  void run();

  std::unique_ptr<Nvml> nvml_;  // null if NVML is not installed
  std::vector<Reading> readings_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread thread_;  // declared last, because this thread uses the other members
};

}  // namespace orrery::cuda
