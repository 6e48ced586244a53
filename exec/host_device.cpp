#include "exec/host_device.h"

#include <unistd.h>

#include "exec/cpu_launch.h"
#include "exec/host_lanes.h"

namespace orrery {

std::unique_ptr<Lanes> HostDevice::lanes(RunState& state, std::span<std::byte>, Watcher watcher, std::int64_t) {
  return std::make_unique<HostLanes>(
      rank_, transport_, [&state](const Launch& l) { launch_on_cpu(state, l); }, std::move(watcher));
}

void HostDevice::count(const MemoryUse& use, MeasuredMemory& memory) {
  memory.capacity = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE);
  memory.peak_device = use.peak_reserved;
}

Execution execute(const Rank& rank, Transport& transport, const Text& text, const ExecuteOptions& options) {
  HostDevice device(rank, transport);
  return execute(rank, device, text, options);
}

}  // namespace orrery
