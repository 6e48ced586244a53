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

}  // namespace

std::int64_t largest_batch(const Spec& spec, const Profile& profile, Bytes most, const std::atomic<bool>* stop) {
  const Strategy& s = spec.strategy;
  if (states_micro_batch(spec)) {
    const std::int64_t unit = s.data * s.micro_batch;
    return generation_memory(spec, profile, stop).sequences_within(most) * s.data / unit * unit;
  }
  const std::int64_t unit = s.data * s.pipeline, multiples_of_most = kMostSequences / unit;
  const auto memory_of = [&](std::int64_t multiples) {
    Spec tried = spec;
    set_batch(tried, multiples * unit);
    return generation_memory(tried, profile, stop);
  };
  const auto limit = static_cast<double>(most);
  const GeneratedMemory one = memory_of(1);
  if (one.sum() > most) return 0;
  // Not more than this fit, since working memory does not shrink as the batch grows.
  const std::int64_t bound =
      std::min(multiples_of_most, std::max<std::int64_t>(1, one.sequences_within(most) * s.data / unit));
  const auto bytes_of = [&](std::int64_t multiples) { return static_cast<double>(memory_of(multiples).sum()); };
  const double at_bound = bytes_of(bound);
  if (at_bound <= limit) return bound * unit;
  return last_that_fits({1, static_cast<double>(one.sum())}, {bound, at_bound}, limit, bytes_of) * unit;
}

}  // namespace orrery
