// NVML of the null GPU, a library of the real one's name that the null GPU's programs find before it: sensors that say
// what a test has planted. By default the multiprocessors run at 1755 MHz, the device takes 650 W and is limited by its
// power. $ORRERY_NULL_MHZ_PER_SECOND lets the clock rise or fall from the first reading on. The signatures are those of
// the NVML API reference; 0 is success, 2 an invalid argument, 6 not found.
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "tests/exec/cuda/null_gpu/null_gpu.h"

namespace {

constexpr int kNotFound = 6, kInvalid = 2;
constexpr unsigned kMemoryMHz = 2619, kCelsius = 61, kMilliwatts = 650'000;
constexpr unsigned long long kPowerCap = 0x4;

int device, users = 0;
double clock_MHz = 1755;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double since_first() {
  static const double first = now();
  return now() - first;
}

double drift() {
  const char* text = std::getenv("ORRERY_NULL_MHZ_PER_SECOND");
  return text == nullptr ? 0 : std::atof(text);
}

}  // namespace

extern "C" {

// Plants the clock of the multiprocessors.
void orrery_null_clock(double mhz) { clock_MHz = mhz; }
// The number of nvmlInit_v2 without its nvmlShutdown.
int orrery_null_users() { return users; }

int nvmlInit_v2() {
  ++users;
  return 0;
}
int nvmlShutdown() {
  --users;
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** handle) {
  if (users == 0 || std::strcmp(bus, orrery::null_gpu::kBus) != 0) return kNotFound;
  *handle = &device;
  return 0;
}
int nvmlDeviceGetClockInfo(void* handle, int kind, unsigned* mhz) {
  if (handle != &device || (kind != 1 && kind != 2)) return kInvalid;
  *mhz = kind == 2 ? kMemoryMHz : static_cast<unsigned>(clock_MHz + drift() * since_first());
  return 0;
}
int nvmlDeviceGetTemperature(void* handle, int sensor, unsigned* celsius) {
  if (handle != &device || sensor != 0) return kInvalid;
  *celsius = kCelsius;
  return 0;
}
int nvmlDeviceGetPowerUsage(void* handle, unsigned* milliwatts) {
  if (handle != &device) return kInvalid;
  *milliwatts = kMilliwatts;
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void* handle, unsigned long long* millijoules) {
  if (handle != &device) return kInvalid;
  *millijoules = static_cast<unsigned long long>(kMilliwatts * since_first());
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* handle, unsigned long long* reasons) {
  if (handle != &device) return kInvalid;
  *reasons = kPowerCap;
  return 0;
}
}
