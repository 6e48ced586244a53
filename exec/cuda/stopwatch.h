#pragma once

#include <functional>
#include <span>
#include <vector>

#include "exec/cuda/handles.h"
#include "exec/cuda/sensors.h"
#include "kernels/cuda/products.h"

namespace orrery::cuda {

// Allocates device memory filled with random normal bf16 numbers of standard deviation 0.02, as weights have; a product
// of zeros would take less power, and so would run at higher clocks.
Memory noise(Bytes bytes);

// A measured time of work on a stream. median: median of some repetitions, in seconds. spread: interquartile distance
// over the median. sm_MHz: median clock of the multiprocessors during the measurement (0: not known).
struct Timed {
  Seconds median = 0;
  double spread = 0;
  double sm_MHz = 0;
};

// Times work on a separate stream, from the end of one repetition to the end of the next, as the executor times tasks.
// In a block, before each measurement a reference product runs for some hundredths of a second, so that the device has
// the clocks of a training step and not the higher clocks of a short burst. The reference product is timed before and
// after each block; a block over which that time has drifted is measured once more in reverse order, and the mean of
// both measurements is free of a steady drift.
class Stopwatch {
 public:
  static constexpr int kRepetitions = 12;
  using Work = std::function<void()>;  // enqueues the work to be measured once on stream()

  explicit Stopwatch(Sensors& sensors);

  // time() measures the work, and measures it again if the times of its repetitions differ too much; time_once() never
  // measures it again.
  Timed time(const Work& work) { return time(work, 0); }
  Timed time_once(const Work& work) { return time_once(work, 0); }
  // Measures several works one after the other, between two timings of the reference product (that of two fixed
  // matrices); returns the time of each work.
  std::vector<Timed> block(std::span<const Work> works);
  void multiply_reference();  // enqueues the reference product, that of two fixed matrices

  cudaStream_t stream() const { return stream_.get(); }
  kernels::cuda::Products& products() { return products_; }
  // largest factor by which the time of the reference product (a fixed matrix product) changed over a block of
  // measurements
  double drift() const { return drift_; }
  // number of blocks of measurements that were repeated because the time of the reference product (a fixed matrix
  // product, timed before and after each block) had changed
  std::int64_t repeated() const { return repeated_; }

 private:
  Timed time_once(const Work& work, int heating);
  Timed time(const Work& work, int heating);
  Seconds reference_time(int heating);

  Sensors& sensors_;
  Stream stream_;
  std::vector<Event> marks_;
  kernels::cuda::Products products_;
  Memory reference_, result_;
  double drift_ = 1;
  std::int64_t repeated_ = 0;
};

}  // namespace orrery::cuda
