#pragma once

#include <string_view>
#include <vector>

#include "viz/timeline/timeline.h"

namespace orrery {

// A search for events whose name or kind contains a text, ignoring case; hits are in order of time. Labels are compared
// first, so that only events with a matching label are visited.
struct Search {
  std::vector<bool> labels;  // for each label (name and kind of events), whether it matches
  std::vector<EventId> hits;
};
inline constexpr std::size_t kMostHits = 1'000'000;
Search search(const Timeline& timeline, std::string_view text);

// Returns the hit after (or before) the event `current`, in order of time, wrapping around; kNoEvent if there are no
// hits.
EventId next_hit(const Search& search, const Timeline& timeline, EventId current, bool forward);

}  // namespace orrery
