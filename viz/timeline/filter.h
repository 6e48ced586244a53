#pragma once

#include <string>
#include <vector>

#include "viz/timeline/timeline.h"

namespace orrery {

// One restriction of what is shown of a trace: to some of its ops, phases, ranks or times, or to all but those.
struct Filter {
  enum class By : std::uint8_t { op, phase, rank, time };
  By by = By::op;
  bool keeps = true;  // whether only what is named is shown, else all but that
  std::string name;   // name of the op, the phase or the rank's process; of no use for a time
  Picoseconds from = 0, to = 0;
  bool operator==(const Filter&) const = default;
};
std::string text_of(const Filter& filter);  // "only op mlp up", "without rank 3", "only 1.2 ms to 3.4 ms"

// Restrictions that hold together, which can be undone and done again one after another.
class FilterHistory {
 public:
  void add(Filter filter);
  bool undo();  // takes the last restriction back; returns false if there is none
  bool redo();
  void clear();
  std::vector<Filter> now() const { return {all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(count_)}; }
  bool can_undo() const { return count_ > 0; }
  bool can_redo() const { return count_ < all_.size(); }

 private:
  std::vector<Filter> all_;
  std::size_t count_ = 0;  // number of restrictions in `all_` that hold; those after them were taken back
};

// A timeline with the events that all restrictions let pass. Processes, tracks and labels stay what they are, also
// those without events, so that their indices are the same. there: for each event of the whole timeline, its id in the
// restricted one; kNoEvent if it does not pass.
struct FilteredTimeline {
  Timeline timeline;
  std::vector<EventId> there;
};
FilteredTimeline filtered(const Timeline& whole, const std::vector<Filter>& filters);

}  // namespace orrery
