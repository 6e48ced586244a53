#include "exec/cuda/stopwatch.h"

#include <algorithm>
#include <numeric>

#include "exec/cuda/initial.h"
#include "exec/host/lanes.h"

namespace orrery::cuda {
namespace {

namespace gpu = kernels::cuda;

constexpr int kSettling = 3;
// A measurement is repeated if the interquartile distance of its repetitions is more than this fraction of their
// median.
constexpr double kScatter = 0.2;
// Before each measurement of a block, the GPU multiplies two fixed matrices (the reference product) for kSustained
// seconds, but at most kMostHeating times, so that the measurement is made at the clock rate of a GPU under load. The
// time covers several readings of the sensors, and adds some 15 s to a bench of all matrix products and attentions.
constexpr Seconds kSustained = 0.04;
constexpr int kMostHeating = 250;
// The number of rows and columns of the matrices of the reference product: 2 x 4096^3 flops take an H100 some 0.2 ms.
constexpr std::int64_t kReference = 4096;
constexpr Bytes kElementBytes = 2;
// The relative change of the reference product's time that counts as a drift of the GPU's speed: a third of the
// accuracy that predictions aim at (3 %).
constexpr double kDrift = 0.01;
constexpr Seconds kLeast = 1e-9;  // in seconds; shorter measured times count as this, to avoid division by 0

}  // namespace

Memory noise(Bytes bytes) {
  constexpr std::int64_t kRow = 1 << 20;
  Memory memory(Memory::Place::device, bytes);
  const std::int64_t n = bytes / kElementBytes;
  std::vector<std::int64_t> rows, columns(kRow);
  for (std::int64_t r = 0; r * kRow < n; ++r) rows.push_back(r * kRow);
  std::iota(columns.begin(), columns.end(), std::int64_t{0});
  initial_on_cuda({.to = memory.data(),
                   .width = kElementBytes,
                   .count = n,
                   .in = kRow,
                   .key = 3,
                   .deviation = 0.02,
                   .rows = rows,
                   .columns = columns},
                  nullptr);
  return memory;
}

Stopwatch::Stopwatch(Sensors& sensors)
    : sensors_(sensors),
      reference_(noise(kReference * kReference * kElementBytes)),
      result_(Memory::Place::device, kReference * kReference * kElementBytes) {
  for (int i = 0; i <= kSettling + kRepetitions; ++i) marks_.emplace_back(true);
}

void Stopwatch::multiply_reference() {
  const gpu::Matrix x = gpu::matrix(gpu::Array{reference_.data(), gpu::Type::bf16}, kReference, kReference);
  const gpu::Array to{result_.data(), gpu::Type::bf16};
  products_.linear(x, x, {}, gpu::matrix(to, kReference, kReference), stream());
}

Timed Stopwatch::time_once(const Work& work, int heating) {
  const Picoseconds begin = host_now();
  for (int i = 0; i < heating; ++i) multiply_reference();
  ORRERY_CHECK_CUDA(cudaEventRecord(marks_[0].get(), stream()));
  for (std::size_t i = 1; i < marks_.size(); ++i) {
    work();
    ORRERY_CHECK_CUDA(cudaEventRecord(marks_[i].get(), stream()));
  }
  ORRERY_CHECK_CUDA(cudaStreamSynchronize(stream()));
  std::vector<Seconds> times;
  for (std::size_t i = kSettling + 1; i < marks_.size(); ++i) {
    float ms = 0;
    ORRERY_CHECK_CUDA(cudaEventElapsedTime(&ms, marks_[i - 1].get(), marks_[i].get()));
    times.push_back(static_cast<double>(ms) * 1e-3);
  }
  std::sort(times.begin(), times.end());
  const std::size_t n = times.size();
  return {times[n / 2], (times[n * 3 / 4] - times[n / 4]) / std::max(times[n / 2], kLeast),
          heating > 0 ? sensors_.since(begin, "").sm_MHz : 0};
}

Timed Stopwatch::time(const Work& work, int heating) {
  const Timed first = time_once(work, heating);
  if (first.spread <= kScatter) return first;
  const Timed second = time_once(work, heating);
  return second.spread < first.spread ? second : first;
}

Seconds Stopwatch::reference_time(int heating) {
  return time([this] { multiply_reference(); }, heating).median;
}

std::vector<Timed> Stopwatch::block(std::span<const Work> works) {
  const auto runs = static_cast<int>(std::min(kSustained / std::max(reference_time(0), kLeast), 1e9));
  const int heating = std::clamp(runs, 1, kMostHeating);
  std::vector<Timed> times;
  const Seconds before = reference_time(heating);
  for (const Work& work : works) times.push_back(time(work, heating));
  const Seconds after = reference_time(heating);
  const double drift = std::max(before, after) / std::max(std::min(before, after), kLeast);
  drift_ = std::max(drift_, drift);
  if (drift <= 1 + kDrift) return times;
  ++repeated_;
  for (std::size_t i = works.size(); i-- > 0;) {
    const Timed again = time(works[i], heating);
    times[i] = {(times[i].median + again.median) / 2, std::max(times[i].spread, again.spread),
                (times[i].sm_MHz + again.sm_MHz) / 2};
  }
  return times;
}

}  // namespace orrery::cuda
