#include "viz/timeline/runs.h"

#include <algorithm>

namespace orrery {
namespace {

// A run is a stretch of compute for one micro-batch. A pause ends a run if the pause is this many times as long as the
// compute of the run so far.
constexpr Picoseconds kLongPause = 4;

}  // namespace

std::vector<Run> runs_of(const Timeline& timeline, const Track& track) {
  std::vector<Run> runs;
  if (timeline.places.empty()) return runs;
  Picoseconds computed = 0;  // compute time within the last run
  for (EventId e = track.first; e < track.first + track.count; ++e) {
    Kind kind = timeline.kind(e);
    const std::int32_t micro_batch = timeline.places[e].micro_batch;
    if (!computes(kind) || micro_batch < 0) continue;
    if (kind == Kind::recompute) kind = Kind::backward;
    Run* last = runs.empty() ? nullptr : &runs.back();
    const bool goes_on = last != nullptr && last->micro_batch == micro_batch && last->kind == kind &&
                         last->chunk == timeline.places[e].chunk &&
                         timeline.begins[e] - last->end <= kLongPause * computed;
    computed = (goes_on ? computed : 0) + timeline.ends[e] - timeline.begins[e];
    if (goes_on) {
      last->end = timeline.ends[e];
    } else {
      runs.push_back({timeline.begins[e], timeline.ends[e], micro_batch, timeline.places[e].chunk, kind});
    }
  }
  return runs;
}

}  // namespace orrery
