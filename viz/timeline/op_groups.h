#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "viz/timeline/compare.h"

namespace orrery {

// Returns whether a timeline has so few events to compare that the shapes of all are read: each takes some 10 us, as
// the trace file's text is parsed. Timelines of which one has more are compared by classes of kernels (of_classes),
// since shapes of a part of the events would part like ops.
inline constexpr EventId kMostShapes = 1'000'000;
bool has_few_shapes(const ComparedSide& side, EventId most = kMostShapes);

// Numbers for what the ops of two timelines are, such that like ops of both have the same number.
class OpNumbers {
 public:
  // Returns for each label of a timeline the number of its name and kind.
  std::vector<std::uint32_t> of_labels(const Timeline& t);
  // Returns for each event the number of its class of kernels and its shape, or of its class alone if its shape is not
  // known; kNone for host work, waiting, and events of no known class.
  std::vector<std::uint32_t> of_shapes(const ComparedSide& side);
  // Returns for each event the number of its class of kernels and, of a collective, what collective it is.
  std::vector<std::uint32_t> of_classes(const ComparedSide& side);
  const std::string& text(std::uint32_t number) const { return texts_[number]; }

 private:
  std::uint32_t number(std::string text);
  std::map<std::string, std::uint32_t, std::less<>> known_;
  std::vector<std::string> texts_;
};

// The name of the class of an event in tables: that of its class of kernels or, if that is not known, of its kind.
std::string class_text(const Label& label);

// The groups of like ranks of two timelines: for each process of a, and of b, the number of its group.
struct RankFolding {
  std::vector<std::uint32_t> a, b;
};
RankFolding fold_ranks(const Timeline& a, const Timeline& b);

// For each process, the track whose events work longest: a device's main stream.
std::vector<std::uint32_t> main_tracks(const Timeline& t);

}  // namespace orrery
