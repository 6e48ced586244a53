#include "models/spec/documents.h"

#include <algorithm>
#include <cmath>

#include "models/base/random.h"

namespace orrery {
namespace {

// A hash function, SplitMix64 (Steele, Lea and Flood 2014): numbers that differ in one bit give very different results.
std::uint64_t mixed(std::uint64_t x) { return mix_bits(x + 0x9e3779b97f4a7c15ULL); }

// Returns a document's length in tokens for a uniformly distributed number above 0 and below 1.
std::int64_t length_of(const Documents& d, double uniform) {
  if (d.histogram.empty()) {
    const auto drawn = static_cast<std::int64_t>(std::llround(-d.mean * std::log(uniform)));
    return std::clamp<std::int64_t>(drawn, 1, d.max);
  }
  double all = 0, sum = 0;
  for (const auto& [length, share] : d.histogram) all += share;
  for (const auto& [length, share] : d.histogram) {
    sum += share;
    if (uniform * all <= sum) return length;
  }
  return d.histogram.back().first;
}

double pairs_of(double length, std::int64_t window, bool continuum) {
  if (!continuum) return pairs_of_document(length, window);
  const double seen = window > 0 ? std::min(length, static_cast<double>(window)) : length;
  return seen * seen / 2 + (length - seen) * seen;
}

}  // namespace

std::vector<std::int64_t> documents_of(const Spec& spec, std::int64_t sample) {
  std::vector<std::int64_t> lengths;
  std::uint64_t state = mixed(spec.seed ^ mixed(static_cast<std::uint64_t>(sample)));
  for (std::int64_t left = spec.sequence; left > 0; left -= lengths.back()) {
    state = mixed(state);
    // `state >> 11` leaves 53 random bits, as many as a double represents exactly; they become a number above 0 and
    // below 1
    const double uniform = (static_cast<double>(state >> 11) + .5) / 9007199254740992.0;
    lengths.push_back(std::min(left, length_of(*spec.documents, uniform)));
  }
  return lengths;
}

double pairs_of_document(double length, std::int64_t window) {
  const double seen = window > 0 ? std::min(length, static_cast<double>(window)) : length;
  return seen * (seen + 1) / 2 + (length - seen) * seen;
}

DocumentPairs document_pairs(const Spec& spec, std::int64_t window, bool continuum) {
  const Strategy& s = spec.strategy;
  std::vector<double> of_rank(static_cast<std::size_t>(s.data));
  for (std::int64_t sample = 0; sample < s.global_batch; ++sample) {
    double& sum = of_rank[sample / s.micro_batch % s.data];
    for (const std::int64_t length : documents_of(spec, sample))
      sum += pairs_of(static_cast<double>(length), window, continuum);
  }
  double all = 0;
  for (const double sum : of_rank) all += sum;
  const auto samples = static_cast<double>(s.global_batch);
  return {all / samples, std::ranges::max(of_rank) * static_cast<double>(s.data) / samples};
}

}  // namespace orrery
