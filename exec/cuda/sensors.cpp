#include "exec/cuda/sensors.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "exec/cuda/check.h"
#include "exec/host/lanes.h"

namespace orrery::cuda {
namespace {

constexpr auto kEvery = std::chrono::milliseconds(10);
// The shortest time in picoseconds (1 s) over which the mean power is taken from the energy counter, which is exact but
// moves in steps of up to a tenth of a second. For shorter times the power readings are used; the power readings of a
// Hopper GPU are means over the last second (NVML API reference, nvmlDeviceGetPowerUsage).
constexpr Picoseconds kCounted = 1'000'000'000'000;

// Numbers of NVML's enumerations (NVML API reference, nvmlClockType_t and nvmlTemperatureSensors_t).
constexpr int kSmClock = 1, kMemoryClock = 2, kGpuTemperature = 0;

// Bits that state why the clocks are below their highest (NVML API reference, NvmlClocksThrottleReasons). Bit 0, an
// idle GPU, and bit 8, a display, are left out because they do not limit a run.
struct Reason {
  unsigned long long bits;
  const char* name;
};
constexpr Reason kReasons[] = {{0x2, "application clocks"}, {0x4, "power"}, {0x8, "hardware slowdown"},
                               {0x10, "sync boost"},        {0x60, "heat"}, {0x80, "power brake"}};

template <class T>
T median(std::vector<T> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

}  // namespace

// The functions of NVML that are used here, with the signatures of the NVML API reference; each returns 0 for success.
// They are loaded by name, because CUDA's toolkit packages have no header of NVML, and the library belongs to the
// driver.
class Sensors::Nvml {
 public:
  // Returns null if there is no NVML or if NVML does not know the GPU.
  static std::unique_ptr<Nvml> open(int gpu) {
    std::array<char, 32> bus{};
    if (cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), gpu) != cudaSuccess) return nullptr;
    void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    std::unique_ptr<Nvml> nvml(new Nvml(library));
    return nvml->begin(bus.data()) ? std::move(nvml) : nullptr;
  }
  ~Nvml() {
    if (begun_ && shutdown_ != nullptr) shutdown_();
    ::dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  Reading read() const {
    Reading r{.at = host_now()};
    r.sm_MHz = number(clock_, device_, kSmClock);
    r.memory_MHz = number(clock_, device_, kMemoryClock);
    r.temperature_C = number(temperature_, device_, kGpuTemperature);
    unsigned milliwatts = 0;
    if (power_ != nullptr && power_(device_, &milliwatts) == 0) r.power_W = milliwatts * 1e-3;
    unsigned long long millijoules = 0;
    if (energy_ != nullptr && energy_(device_, &millijoules) == 0) r.energy_J = static_cast<double>(millijoules) * 1e-3;
    if (reasons_ != nullptr) reasons_(device_, &r.reasons);
    return r;
  }

 private:
  using Device = void*;
  using Number = int(Device, int, unsigned*);
  using Count = int(Device, unsigned long long*);

  explicit Nvml(void* library) : library_(library) {
    find(init_, "nvmlInit_v2");
    find(shutdown_, "nvmlShutdown");
    find(device_of_, "nvmlDeviceGetHandleByPciBusId_v2");
    find(clock_, "nvmlDeviceGetClockInfo");
    find(temperature_, "nvmlDeviceGetTemperature");
    find(power_, "nvmlDeviceGetPowerUsage");
    find(energy_, "nvmlDeviceGetTotalEnergyConsumption");
    find(reasons_, "nvmlDeviceGetCurrentClocksEventReasons");
    // name of the same NVML function before driver 535
    if (reasons_ == nullptr) find(reasons_, "nvmlDeviceGetCurrentClocksThrottleReasons");
  }
  template <class Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(library_, name));
  }
  bool begin(const char* bus) {
    if (init_ == nullptr || device_of_ == nullptr || clock_ == nullptr) return false;
    begun_ = init_() == 0;
    return begun_ && device_of_(bus, &device_) == 0;
  }
  static double number(Number* function, Device device, int which) {
    unsigned value = 0;
    return function != nullptr && function(device, which, &value) == 0 ? value : 0;
  }

  void* library_;
  bool begun_ = false;
  Device device_ = nullptr;
  int (*init_)() = nullptr;
  int (*shutdown_)() = nullptr;
  int (*device_of_)(const char*, Device*) = nullptr;
  Number *clock_ = nullptr, *temperature_ = nullptr;
  int (*power_)(Device, unsigned*) = nullptr;
  Count *energy_ = nullptr, *reasons_ = nullptr;
};

Sensors::Sensors(int gpu) : nvml_(Nvml::open(gpu)) {
  if (nvml_ == nullptr) return;
  read();
  thread_ = std::thread([this] { run(); });
}

Sensors::~Sensors() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Sensors::read() {
  const Reading reading = nvml_->read();  // without the lock, because reading may take the driver long
  const std::lock_guard lock(mutex_);
  readings_.push_back(reading);
}

void Sensors::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kEvery, [this] { return ending_; })) {
    lock.unlock();
    read();
    lock.lock();
  }
}

Conditions Sensors::since(Picoseconds begin, const std::string& during) {
  if (nvml_ == nullptr) return {.during = during};
  read();
  const std::lock_guard lock(mutex_);
  std::vector<double> sm, memory;
  Conditions c{.during = during};
  double power = 0;
  unsigned long long reasons = 0;
  const Reading *first = nullptr, *last = nullptr;
  for (const Reading& r : readings_) {
    if (r.at < begin) continue;
    sm.push_back(r.sm_MHz);
    memory.push_back(r.memory_MHz);
    power += r.power_W;
    c.temperature_C = std::max(c.temperature_C, r.temperature_C);
    reasons |= r.reasons;
    if (first == nullptr || r.at < first->at) first = &r;
    if (last == nullptr || r.at > last->at) last = &r;
  }
  const auto [low, high] = std::minmax_element(sm.begin(), sm.end());
  c.samples = static_cast<std::int64_t>(sm.size());
  c.sm_low_MHz = *low;
  c.sm_MHz = median(sm);
  c.sm_high_MHz = *high;
  c.memory_MHz = median(memory);
  c.power_W = power / static_cast<double>(sm.size());
  if (last->at - first->at >= kCounted && first->energy_J >= 0 && last->energy_J > first->energy_J)
    c.power_W = (last->energy_J - first->energy_J) / seconds(last->at - first->at);
  for (const Reason& reason : kReasons) {
    if ((reasons & reason.bits) != 0) c.limited_by.emplace_back(reason.name);
  }
  return c;
}

}  // namespace orrery::cuda
