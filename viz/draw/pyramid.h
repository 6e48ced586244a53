#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "viz/draw/geometry.h"
#include "viz/timeline/timeline.h"

namespace orrery {

// The content of one pixel of a row: the kind that fills most of it, how much of it is filled, and whether an event
// begins there that is wide enough to be told from its neighbour.
struct Cell {
  std::uint8_t kind = 0;
  std::uint8_t share = 0;  // filled part of the pixel, out of 255
  bool edge = false;
};

// Levels of detail of a track: for bins of equal time, how much of each bin each kind fills, then the same for bins
// twice as long, and so on. A row of pixels is drawn from bins about as long as a pixel, however many events there are.
class Pyramid {
 public:
  using Bin = std::array<std::uint8_t, 16>;  // filled part by kind, out of 255; at least 1 for a kind that occurs

  static constexpr EventId kFewest = 4096;  // a track with fewer events gets no pyramid

  Pyramid() = default;
  Pyramid(const Timeline& timeline, const Track& track);
  bool empty() const { return levels_.empty(); }
  std::size_t bytes() const;
  // cells: one for each pixel of the scale.
  void render(const TimeScale& scale, std::span<Cell> cells) const;
  template <class A>
  friend void fields(A& a, Pyramid& p) {
    a(p.bin_);
    a(p.levels_);
  }

 private:
  Picoseconds bin_ = 1;  // length of a bin of the finest level
  std::vector<MappedColumn<Bin>> levels_;
};

// The pyramids of all tracks; empty where a track has few events. threads: number of threads that build.
std::vector<Pyramid> build_pyramids(const Timeline& timeline, unsigned threads);

// Draws the row of a track: from its events where few are in view, else from the pyramid.
void render_track(const Timeline& timeline, const Track& track, const Pyramid& pyramid, const TimeScale& scale,
                  std::span<Cell> cells);

}  // namespace orrery
