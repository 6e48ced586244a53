#include "sim/summary/times.h"

#include <algorithm>

namespace orrery {
namespace {

// The longest gap between two kernels that is put down to the device itself, not to a wait of the second kernel.
// Kernels that are launched in time follow each other within 1 to 3 us on NVIDIA's and AMD's GPUs, and traces of
// PyTorch before 2.2 have times in whole microseconds.
constexpr std::int64_t kKernelGap_ns = 5000;

// The total time that a set of intervals covers, overlaps counted once. Intervals are added in the order of their
// begins.
class CoveredTime {
 public:
  explicit CoveredTime(std::int64_t begin) : end_(begin) {}
  // Adds an interval to the set. Returns how much later it begins than all intervals added before have ended; 0 if it
  // begins before.
  std::int64_t add(std::int64_t begin, std::int64_t end) {
    const std::int64_t gap = std::max<std::int64_t>(begin - end_, 0);
    covered_ += std::max<std::int64_t>(end - std::max(begin, end_), 0);
    end_ = std::max(end_, end);
    return gap;
  }
  std::int64_t covered() const { return covered_; }
  std::int64_t end() const { return end_; }

 private:
  std::int64_t covered_ = 0, end_ = 0;
};

enum class KernelLayer : std::uint8_t { compute, communication, copy, wait };

KernelLayer layer_of_kernel(const KernelRecord& k, const TraceNames& names) {
  if (k.waits) return KernelLayer::wait;
  const KernelClass c = names.class_of(k.name);
  return c == KernelClass::collective ? KernelLayer::communication
         : c == KernelClass::copy     ? KernelLayer::copy
                                      : KernelLayer::compute;
}

void add_idle_gap(DeviceTimes& times, std::int64_t gap, const KernelRecord& next) {
  if (next.launch < gap)
    times.idle_host += gap;
  else if (gap <= kKernelGap_ns)
    times.idle_kernel += gap;
  else
    times.idle_other += gap;
}

}  // namespace

std::optional<StepTimes> step_times(const std::vector<StepRecord>& steps) {
  if (steps.empty()) return std::nullopt;
  StepTimes times{.begin = steps[0].begin, .end = steps[0].end};
  for (const StepRecord& s : steps) {
    ++times.count;
    times.begin = std::min(times.begin, s.begin);
    times.end = std::max(times.end, s.end);
    times.sum += std::min(s.end - s.begin, INT64_MAX - times.sum);
  }
  return times;
}

DeviceTimes device_times(const TraceRecords& records, std::size_t first, std::size_t end, const TraceNames& names,
                         const std::optional<StepTimes>& steps) {
  DeviceTimes times;
  if (first == end) return times;
  std::int64_t begin = records.kernels[first].begin;
  if (steps) begin = std::min(begin, steps->begin);
  // A moment counts for the first of these kinds that runs then: compute, communication, copy, wait. `moving`, `busy`
  // and `all` hold the intervals of one kind and of those before it, so that the difference between two neighbouring
  // sets is the time in which only the later kind runs (its exposed time).
  CoveredTime compute(begin), moving(begin), busy(begin), all(begin);
  CoveredTime communication(begin), copy(begin);
  for (std::size_t i = first; i < end; ++i) {
    const KernelRecord& k = records.kernels[i];
    const KernelLayer layer = layer_of_kernel(k, names);
    if (layer == KernelLayer::compute) compute.add(k.begin, k.end);
    if (layer == KernelLayer::communication) communication.add(k.begin, k.end);
    if (layer == KernelLayer::copy) copy.add(k.begin, k.end);
    if (layer <= KernelLayer::communication) moving.add(k.begin, k.end);
    if (layer <= KernelLayer::copy) busy.add(k.begin, k.end);
    if (const std::int64_t gap = all.add(k.begin, k.end); gap > 0) add_idle_gap(times, gap, k);
  }
  const std::int64_t last = steps ? std::max(all.end(), steps->end) : all.end();
  times.window = last - begin;
  times.compute = compute.covered();
  times.exposed_communication = moving.covered() - compute.covered();
  times.exposed_copy = busy.covered() - moving.covered();
  times.communication = communication.covered();
  times.copy = copy.covered();
  times.idle_peers = all.covered() - busy.covered();
  times.idle_other += last - all.end();
  return times;
}

}  // namespace orrery
