#pragma once

#include <string_view>
#include <vector>

#include "viz/timeline/timeline.h"

namespace orrery {

// A search for the events whose name or kind contains a text, ignoring case; hits are in order of time. Labels are
// compared first, events only where their label matches.
struct Search {
  std::vector<bool> labels;  // by label: whether the label matches
  std::vector<EventId> hits;
};
inline constexpr std::size_t kMostHits = 1'000'000;
Search search(const Timeline& timeline, std::string_view text);

// The next (or previous) hit from the one at `current`, in the order of hits, wrapping around; kNoEvent without hits.
EventId next_hit(const Search& search, const Timeline& timeline, EventId current, bool forward);

}  // namespace orrery
