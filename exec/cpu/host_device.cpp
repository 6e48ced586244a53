#include "exec/cpu/host_device.h"

#include <unistd.h>

#include <thread>

#include "exec/cpu/host_lanes.h"
#include "exec/cpu/launch.h"
#include "models/spec/stragglers.h"

namespace orrery {

namespace {

// Returns a function that runs tasks on a straggler (a rank that cluster.stragglers slows down): after each compute
// task it waits, so that the task lasts `slowdown` times as long.
std::function<void(const Launch&)> slowed(RunState& state, double slowdown) {
  return [&state, slowdown](const Launch& l) {
    const Picoseconds begin = host_now();
    launch_on_cpu(state, l);
    const Picoseconds end = begin + static_cast<Picoseconds>(slowdown * static_cast<double>(host_now() - begin));
    while (host_now() < end) std::this_thread::yield();
  };
}

}  // namespace

std::unique_ptr<Lanes> HostDevice::lanes(RunState& state, std::span<std::byte>, Watcher watcher, std::int64_t) {
  const double slowdown = slowdown_of(rank_.spec, rank_.number);
  std::function<void(const Launch&)> compute = [&state](const Launch& l) { launch_on_cpu(state, l); };
  if (slowdown > 1) compute = slowed(state, slowdown);
  return std::make_unique<HostLanes>(rank_, transport_, std::move(compute), std::move(watcher));
}

void HostDevice::run(RunState& state, const Launch& launch) { launch_on_cpu(state, launch); }

void HostDevice::count(const MemoryUse& use, MeasuredMemory& memory) {
  memory.capacity = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE);
  memory.peak_device = use.peak_reserved;
}

Execution execute(const Rank& rank, Transport& transport, const Text& text, const ExecuteOptions& options) {
  HostDevice device(rank, transport);
  return execute(rank, device, text, options);
}

}  // namespace orrery
