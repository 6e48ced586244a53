#pragma once

#include "exec/host/device.h"
#include "exec/host/execute.h"
#include "exec/transport/transport.h"

namespace orrery {

// The device of a CPU rank: host memory, threads that compute or copy, and a thread that drives transfers.
class HostDevice final : public RankDevice {
 public:
  HostDevice(const Rank& rank, Transport& transport) : rank_(rank), transport_(transport) {}

  SegmentSource segments() override { return host_segments(); }
  void clear(std::span<std::byte> bytes) override { clear_on_host(bytes); }
  void set_initial(const InitialRun& run) override { initial_on_host(run); }
  void read(std::byte* to, const std::byte* from, std::size_t bytes) override { copy_on_host(to, from, bytes); }
  void run(RunState& state, const Launch& launch) override;
  std::unique_ptr<Lanes> lanes(RunState& state, std::span<std::byte> workspace, Watcher watcher,
                               std::int64_t steps) override;
  void count(const MemoryUse& use, MeasuredMemory& memory) override;

 private:
  const Rank& rank_;
  Transport& transport_;
};

// Executes the plan of one rank on the CPU.
Execution execute(const Rank& rank, Transport& transport, const Text& text, const ExecuteOptions& options);

}  // namespace orrery
