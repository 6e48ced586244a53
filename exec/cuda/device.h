#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "exec/cuda/initial.h"
#include "exec/cuda/queue.h"
#include "exec/host/device.h"
#include "exec/host/queue_lanes.h"

namespace orrery::cuda {

// Number of GPUs that this process may use; 0, with the reason, if CUDA finds none or is not installed.
struct GpuCount {
  int count = 0;
  std::string why;
};
GpuCount count_gpus();

// Makes a GPU the calling thread's current GPU; every thread calls this before any other CUDA function.
void use_gpu(int number);

// gpu_name() returns the GPU's name, such as "NVIDIA H100 80GB HBM3"; gpu_fingerprint() also the versions of the
// driver, the runtime and the libraries, which a measured profile records.
std::string gpu_name(int number);
std::vector<std::pair<std::string, std::string>> gpu_fingerprint(int number);

// Counts memory in use on the current GPU besides the ranks' memory segments: the CUDA context, libraries, other
// processes.
class SharedGpu {
 public:
  // Adds to the count of bytes in the memory segments of all ranks of this process; `bytes` is negative for segments
  // that are given back.
  void add(Bytes bytes);
  Bytes beside_segments();
  Bytes capacity() const;

 private:
  std::atomic<Bytes> segments_{0}, most_beside_{0};
};

// A rank on the current GPU. one_queue: all lanes share one stream, so that the rank's tasks run one after the other.
// mark_every: one step out of this many is timed (Marks in queue.h).
class CudaDevice final : public RankDevice, public QueueDevice {
 public:
  CudaDevice(const Rank& rank, SharedGpu& gpu, QueuedTransport& transport, bool one_queue, std::int64_t mark_every = 1)
      : rank_(rank), gpu_(gpu), transport_(transport), one_queue_(one_queue), mark_every_(mark_every) {}
  ~CudaDevice() override;

  SegmentSource segments() override;
  SegmentSource host_memory() override;
  Bytes workspace() const override;
  void clear(std::span<std::byte> bytes) override;
  void set_initial(const InitialRun& run) override;
  void read(std::byte* to, const std::byte* from, std::size_t bytes) override;
  std::unique_ptr<Lanes> lanes(RunState& state, std::span<std::byte> workspace, Watcher watcher,
                               std::int64_t steps) override;
  void count(const MemoryUse& use, MeasuredMemory& memory) override;
  Picoseconds clock_uncertainty() const { return uncertainty_; }

  std::unique_ptr<TaskQueue> queue() override;
  void begin_step() override;
  void end_step() override;
  bool has_ended(TaskId task) override;
  std::vector<std::vector<Picoseconds>> ends() override;

 private:
  const Rank& rank_;
  SharedGpu& gpu_;
  QueuedTransport& transport_;
  bool one_queue_;
  std::int64_t mark_every_;
  std::unique_ptr<CudaState> state_;
  std::unique_ptr<Marks> marks_;
  std::vector<CudaQueue*> queues_;  // for each lane, its CUDA stream
  Picoseconds uncertainty_ = 0;
  bool seen_ = false;  // whether the device memory in use outside the ranks' segments has been measured
};

}  // namespace orrery::cuda
