#include "viz/timeline/align.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "sim/print/text.h"

namespace orrery {
namespace {

// Smallest number of common collectives from which a clock difference is estimated.
constexpr std::size_t kFewest = 3;

// For each label (name and kind) of collectives, the times at which they ended, in order.
using Ends = std::map<std::uint32_t, std::vector<Picoseconds>>;

Ends ends_of(TimelineBuilder& builder, std::size_t first, std::size_t last) {
  Ends ends;
  for (std::size_t e = first; e < last; ++e) {
    const TimelineBuilder::Event event = builder.event(e);
    const Kind kind = builder.timeline().labels[event.label].kind;
    if (communicates(kind) && kind != Kind::pipeline) ends[event.label].push_back(event.end);
  }
  for (auto& [label, times] : ends) std::sort(times.begin(), times.end());
  return ends;
}

// Returns the differences between the end times of collectives in two files, for labels that occur equally often in
// both.
std::vector<Picoseconds> differences(const Ends& own, const Ends& reference) {
  std::vector<Picoseconds> result;
  for (const auto& [label, times] : own) {
    const auto there = reference.find(label);
    if (there == reference.end() || there->second.size() != times.size()) continue;
    for (std::size_t i = 0; i < times.size(); ++i) result.push_back(there->second[i] - times[i]);
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace

void align_clocks(TimelineBuilder& builder, const std::vector<std::size_t>& firsts) {
  if (firsts.size() < 2) return;
  const Ends reference = ends_of(builder, firsts[0], firsts[1]);
  for (std::size_t i = 1; i < firsts.size(); ++i) {
    const std::size_t last = i + 1 < firsts.size() ? firsts[i + 1] : builder.events();
    const std::vector<Picoseconds> d = differences(ends_of(builder, firsts[i], last), reference);
    if (d.size() < kFewest) continue;
    const Picoseconds shift = d[d.size() / 2];
    const Picoseconds spread = d[d.size() * 3 / 4] - d[d.size() / 4];
    if (std::abs(shift) <= spread) continue;
    builder.shift(firsts[i], last, shift);
    builder.timeline().remarks.push_back(fmt::format("file {}: its clock was moved by {}{} (quartile distance {})", i,
                                                     shift < 0 ? "-" : "", time_text(seconds(std::abs(shift))),
                                                     time_text(seconds(spread))));
  }
}

}  // namespace orrery
