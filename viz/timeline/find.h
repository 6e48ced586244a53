#pragma once

#include <string_view>
#include <vector>

#include "viz/timeline/timeline.h"

namespace orrery {

// The events whose name, or kind, holds a text, whatever its case; in order of time. Looks at labels, not at events,
// until one matches.
struct Search {
  std::vector<bool> labels;  // by label: matches
  std::vector<EventId> hits;
};
inline constexpr std::size_t kMostHits = 1'000'000;
Search search(const Timeline& timeline, std::string_view text);

// The hit after (before) the one at `current` in the order of hits, around the end; kNoEvent without hits.
EventId next_hit(const Search& search, const Timeline& timeline, EventId current, bool forward);

}  // namespace orrery
