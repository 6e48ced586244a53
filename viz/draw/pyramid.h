#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "viz/draw/geometry.h"
#include "viz/timeline/timeline.h"

namespace orrery {

// The content of one pixel of a row: the kind of event that fills most of the pixel, how much of the pixel is filled,
// and whether it has an edge, which is the begin of an event wide enough to be told from the event before.
struct Cell {
  std::uint8_t kind = 0;
  std::uint8_t share = 0;  // part of the pixel's width that events fill, out of 255
  bool edge = false;
};

// Levels of detail of a track (a row of events). At the finest level, time is divided into equal bins; each bin stores
// the fraction of its time that each kind of event fills. At every further level bins are twice as long. Pixels are
// drawn from bins about as long as a pixel, so drawing takes the same time for any number of events.
class Pyramid {
 public:
  // For each kind of event, the part of a bin's time that it fills, out of 255; at least 1 if the kind occurs.
  using Bin = std::array<std::uint8_t, kKinds>;

  static constexpr EventId kFewest = 4096;  // smallest number of events of a track that has levels of detail

  Pyramid() = default;
  Pyramid(const Timeline& timeline, const Track& track);
  bool empty() const { return levels_.empty(); }
  std::size_t bytes() const;
  // cells: receives the content of each pixel across the view's width.
  void render(const TimeScale& scale, std::span<Cell> cells) const;
  template <class A>
  friend void fields(A& a, Pyramid& p) {
    a(p.bin_);
    a(p.levels_);
  }

 private:
  Picoseconds bin_ = 1;  // duration of a bin at the finest level
  std::vector<MappedColumn<Bin>> levels_;
};

// Returns the levels of detail of each track; empty for tracks with few events. threads: number of threads that build
// them.
std::vector<Pyramid> build_pyramids(const Timeline& timeline, unsigned threads);

// Computes the pixels (cells) of the row that shows a track (a sequence of events): from the events themselves if few
// are in view, else from the track's precomputed levels of detail (pyramid).
void render_track(const Timeline& timeline, const Track& track, const Pyramid& pyramid, const TimeScale& scale,
                  std::span<Cell> cells);

}  // namespace orrery
