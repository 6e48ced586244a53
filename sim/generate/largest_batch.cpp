#include "sim/generate/largest_batch.h"

#include <algorithm>

#include "models/load/open_spec.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

// A batch of so many multiples of the least one, and the bytes that it needs of the GPU that needs the most.
struct Need {
  std::int64_t multiples = 0;
  double bytes = 0;
};

// Finds the most multiples that fit. Memory grows with the batch, nearly in a straight line, so the next batch to try
// lies where the line through the two nearest reaches the limit; every second one halves the range instead, so that it
// shrinks whatever the curve.
template <class MemoryOf>
std::int64_t last_that_fits(Need fits, Need too_many, double most, const MemoryOf& memory_of) {
  for (bool halve = false; too_many.multiples - fits.multiples > 1; halve = !halve) {
    const auto range = static_cast<double>(too_many.multiples - fits.multiples);
    const double part = halve ? 0.5 : (most - fits.bytes) / (too_many.bytes - fits.bytes);
    const std::int64_t next = std::clamp(fits.multiples + static_cast<std::int64_t>(part * range), fits.multiples + 1,
                                         too_many.multiples - 1);
    const Need tried = {next, memory_of(next)};
    (tried.bytes <= most ? fits : too_many) = tried;
  }
  return fits.multiples;
}

// Returns how many multiples of `unit` sequences fit, 0 if not even one.
template <class MemoryOf>
std::int64_t multiples_that_fit(const MemoryOf& memory_of, std::int64_t data, std::int64_t unit, Bytes most) {
  const GeneratedMemory one = memory_of(unit);
  if (one.sum() > most) return 0;
  // Not more than this fit, since working memory does not shrink as the batch grows.
  const std::int64_t bound =
      std::min(kMostSequences / unit, std::max<std::int64_t>(1, one.sequences_within(most) * data / unit));
  const auto bytes_of = [&](std::int64_t multiples) { return static_cast<double>(memory_of(multiples * unit).sum()); };
  const auto limit = static_cast<double>(most);
  const double at_bound = bytes_of(bound);
  if (at_bound <= limit) return bound;
  return last_that_fits({1, static_cast<double>(one.sum())}, {bound, at_bound}, limit, bytes_of);
}

}  // namespace

std::int64_t largest_batch(const Spec& spec, const Profile& profile, Bytes most, const std::atomic<bool>* stop) {
  const Strategy& s = spec.strategy;
  if (states_micro_batch(spec)) {
    const std::int64_t unit = s.data * s.micro_batch;
    return generation_memory(spec, profile, stop).sequences_within(most) * s.data / unit * unit;
  }
  const std::int64_t unit = s.data * s.pipeline;
  const auto memory_of = [&](std::int64_t batch) {
    Spec tried = spec;
    set_batch(tried, batch);
    return generation_memory(tried, profile, stop);
  };
  // The most sequences that fit beside the working memory of fewer, which does not shrink as the batch grows.
  const auto most_beside = [&](const GeneratedMemory& fewer) { return fewer.sequences_within(most) * s.data; };
  const GeneratedMemory least = memory_of(s.data);
  if (least.sum() > most) return 0;
  const std::int64_t multiples = multiples_that_fit(memory_of, s.data, unit, most);
  // Micro-batches fill the stages evenly in multiples of `unit` only. Batches between two of these have fewer and
  // larger micro-batches, so that their memory does not grow evenly: each is tried.
  const std::int64_t filled = multiples * unit, above = most_beside(multiples == 0 ? least : memory_of(filled));
  const std::int64_t first = std::min({filled + unit - s.data, above, kMostSequences / s.data * s.data});
  for (std::int64_t batch = first; batch > filled; batch -= s.data) {
    if (memory_of(batch).sum() <= most) return batch;
  }
  return filled;
}

}  // namespace orrery
