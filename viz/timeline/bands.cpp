#include "viz/timeline/bands.h"

#include <algorithm>

namespace orrery {
namespace {

bool goes_on(const Timeline& t, const Band& last, std::int8_t phase, std::int32_t micro_batch) {
  if (last.phase != phase) return false;
  const auto pass = [&](std::int32_t batch) -> const std::string& {
    return t.pass_of_batch[std::min(static_cast<std::size_t>(std::max(0, batch)), t.pass_of_batch.size() - 1)];
  };
  return t.pass_of_batch.empty() || last.micro_batch == micro_batch || pass(last.micro_batch) == pass(micro_batch);
}

// Calls function(band, process) for the bands of a phase that begin in a range of time.
template <class F>
void for_each_band(const std::vector<std::vector<Band>>& bands, std::int8_t phase, Picoseconds from, Picoseconds to,
                   const F& function) {
  for (std::uint32_t p = 0; p < bands.size(); ++p) {
    for (const Band& b : bands[p]) {
      if (b.phase == phase && b.begin >= from && b.begin < to) function(b, p);
    }
  }
}

}  // namespace

std::vector<Band> bands_of(const Timeline& t, const Track& track) {
  std::vector<Band> bands;
  for (EventId e = track.first; e < track.first + track.count; ++e) {
    const Label& label = t.labels[t.label[e]];
    if (label.phase == kNoPhase || !computes(label.kind)) continue;
    const std::int32_t micro_batch = t.place(e).micro_batch;
    if (!bands.empty() && goes_on(t, bands.back(), label.phase, micro_batch))
      bands.back().end = t.ends[e];
    else
      bands.push_back({t.begins[e], t.ends[e], label.phase, micro_batch});
  }
  return bands;
}

std::string name_of(const Timeline& t, const Band& band) {
  const auto batch = static_cast<std::size_t>(std::max(0, band.micro_batch));
  return batch < t.pass_of_batch.size() ? t.pass_of_batch[batch] : t.phases[static_cast<std::size_t>(band.phase)];
}

std::vector<OpStatistics> phase_statistics(const Timeline& t, const std::vector<std::vector<Band>>& bands,
                                           Picoseconds from, Picoseconds to) {
  std::vector<OpStatistics> result;
  for (std::uint32_t phase = 0; phase < t.phases.size(); ++phase) {
    std::vector<Picoseconds> all;
    for_each_band(bands, static_cast<std::int8_t>(phase), from, to,
                  [&](const Band& b, std::uint32_t) { all.push_back(b.end - b.begin); });
    if (!all.empty()) result.push_back(statistics_of(phase, all));
  }
  return result;
}

OpSpread spread_of_phase(const std::vector<std::vector<Band>>& bands, std::int8_t phase, Picoseconds from,
                         Picoseconds to) {
  SpreadSums sums;
  for_each_band(bands, phase, from, to,
                [&](const Band& b, std::uint32_t p) { sums.add(p, b.micro_batch, b.end - b.begin); });
  return sums.spread();
}

}  // namespace orrery
