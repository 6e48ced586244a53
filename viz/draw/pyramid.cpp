#include "viz/draw/pyramid.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

namespace orrery {
namespace {

constexpr std::size_t kEventsPerBin = 8;
constexpr double kEdge = 3;  // smallest width of an event in pixels for which its edge is drawn

std::uint8_t to_share(double part) {
  return part <= 0 ? 0 : static_cast<std::uint8_t>(std::clamp(std::lround(part * 255), 1L, 255L));
}

// Sums the time of each kind of event within one pixel, while a row is drawn from left to right.
struct Pixel {
  std::array<double, kKinds> filled{};

  void put(Cell& cell) {
    double all = 0;
    for (int k = 0; k < kKinds; ++k) {
      all += filled[k];
      if (filled[k] > filled[cell.kind]) cell.kind = static_cast<std::uint8_t>(k);
    }
    cell.share = to_share(all);
    filled.fill(0);
  }
};

// Computes the pixels (cells) of a track from its events. Values that the loop reads are copied to local variables
// first, because the loop writes cells of bytes, which the compiler must assume to alias any object.
void render_events(const Timeline& t, const Track& track, const TimeScale scale, std::span<Cell> cells) {
  const auto width = static_cast<std::int64_t>(cells.size());
  const EventId last = track.first + track.count;
  const Picoseconds *const begins = t.begins.data(), *const ends = t.ends.data();
  const std::uint32_t* const labels = t.label.data();
  Pixel pixel;
  std::int64_t at = -1;  // index of the pixel whose events are being summed
  for (EventId e = first_after(t, track, scale.begin); e < last && begins[e] < scale.end; ++e) {
    const double from = std::max(0.0, scale.x_of(begins[e]));
    const double to = std::min(static_cast<double>(width), scale.x_of(ends[e]));
    const auto kind = static_cast<std::size_t>(t.labels[labels[e]].kind);
    const auto first = static_cast<std::int64_t>(from);
    if (first >= width) break;
    if (first != at) {
      if (at >= 0) pixel.put(cells[at]);
      at = first;
    }
    const auto end = std::min(static_cast<std::int64_t>(to), width - 1);
    if (to - from >= kEdge && begins[e] >= scale.begin) cells[first].edge = true;
    if (end == first) {
      pixel.filled[kind] += std::max(to - from, 1.0 / 255);
      continue;
    }
    pixel.filled[kind] += static_cast<double>(first + 1) - from;
    pixel.put(cells[first]);
    for (std::int64_t x = first + 1; x < end; ++x) cells[x] = {static_cast<std::uint8_t>(kind), 255, false};
    at = end;
    pixel.filled[kind] = to - static_cast<double>(end);
  }
  if (at >= 0) pixel.put(cells[at]);
}

}  // namespace

Pyramid::Pyramid(const Timeline& timeline, const Track& track) {
  std::size_t bins = 64;
  while (bins < track.count / kEventsPerBin) bins *= 2;
  bin_ = std::max<Picoseconds>(1, ceil_div(std::max<Picoseconds>(timeline.end, 1), static_cast<Picoseconds>(bins)));
  std::vector<Bin> finest(bins, Bin{});
  std::array<Picoseconds, kKinds> filled{};
  std::size_t at = 0;
  const auto put = [&] {
    for (int k = 0; k < kKinds; ++k) {
      finest[at][k] = to_share(static_cast<double>(filled[k]) / static_cast<double>(bin_));
      filled[k] = 0;
    }
  };
  for (EventId e = track.first; e < track.first + track.count; ++e) {
    const auto kind = static_cast<std::size_t>(timeline.kind(e));
    const Picoseconds end = timeline.ends[e];
    Picoseconds from = timeline.begins[e];
    for (auto bin = static_cast<std::size_t>(from / bin_); bin < bins; ++bin) {
      if (bin != at) {
        put();
        at = bin;
      }
      const Picoseconds to = std::min(end, static_cast<Picoseconds>(bin + 1) * bin_);
      filled[kind] += std::max<Picoseconds>(to - from, 1);
      from = to;
      if (to >= end) break;
    }
  }
  put();
  levels_.emplace_back(std::move(finest));
  while (levels_.back().size() > 64) {
    const MappedColumn<Bin>& below = levels_.back();
    std::vector<Bin> level(below.size() / 2);
    for (std::size_t i = 0; i < level.size(); ++i) {
      for (std::size_t k = 0; k < level[i].size(); ++k)
        level[i][k] = static_cast<std::uint8_t>((below[2 * i][k] + below[2 * i + 1][k] + 1) / 2);
    }
    levels_.emplace_back(std::move(level));
  }
}

std::size_t Pyramid::bytes() const {
  std::size_t sum = 0;
  for (const auto& level : levels_) sum += level.size() * sizeof(Bin);
  return sum;
}

void Pyramid::render(const TimeScale& scale, std::span<Cell> cells) const {
  const double per_pixel = scale.picoseconds_per_pixel();
  std::size_t level = 0;
  double bin = static_cast<double>(bin_);
  while (level + 1 < levels_.size() && bin * 2 <= per_pixel) {
    bin *= 2;
    ++level;
  }
  const MappedColumn<Bin>& bins = levels_[level];
  const auto most = static_cast<std::int64_t>(bins.size()) - 1;
  const double all_bins = static_cast<double>(bins.size()) * bin;
  for (std::size_t x = 0; x < cells.size(); ++x) {
    const double from = static_cast<double>(scale.begin) + static_cast<double>(x) * per_pixel;
    if (from + per_pixel <= 0 || from >= all_bins) continue;  // the view may reach beyond the trace: there is nothing
    const auto first = std::clamp<std::int64_t>(static_cast<std::int64_t>(from / bin), 0, most);
    const auto last =
        std::clamp<std::int64_t>(static_cast<std::int64_t>((from + per_pixel) / bin), first + 1, most + 1);
    std::array<std::uint16_t, kKinds> sum{};
    for (std::int64_t b = first; b < last; ++b) {
      for (std::size_t k = 0; k < sum.size(); ++k) sum[k] = static_cast<std::uint16_t>(sum[k] + bins[b][k]);
    }
    std::uint32_t all = 0, best = 0;
    for (std::size_t k = 0; k < sum.size(); ++k) {
      all += sum[k];
      if (sum[k] > sum[best]) best = static_cast<std::uint32_t>(k);
    }
    const auto count = static_cast<std::uint32_t>(last - first);
    cells[x] = {static_cast<std::uint8_t>(best), static_cast<std::uint8_t>(std::min(255U, (all + count - 1) / count)),
                false};
  }
}

std::vector<Pyramid> build_pyramids(const Timeline& timeline, unsigned threads) {
  std::vector<Pyramid> pyramids(timeline.tracks.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < pyramids.size(); i = next++) {
      if (timeline.tracks[i].count >= Pyramid::kFewest) pyramids[i] = Pyramid(timeline, timeline.tracks[i]);
    }
  };
  std::vector<std::thread> others;
  if (timeline.events() >= 16 * Pyramid::kFewest) {
    for (unsigned i = 1; i < threads; ++i) others.emplace_back(work);
  }
  work();
  for (std::thread& t : others) t.join();
  return pyramids;
}

void render_track(const Timeline& timeline, const Track& track, const Pyramid& pyramid, const TimeScale& scale,
                  std::span<Cell> cells) {
  std::fill(cells.begin(), cells.end(), Cell{});
  if (track.count == 0) return;
  if (!pyramid.empty()) {
    const EventId from = first_after(timeline, track, scale.begin);
    const EventId to = first_after(timeline, track, scale.end);
    if (to - from > 2 * cells.size()) return pyramid.render(scale, cells);
  }
  render_events(timeline, track, scale, cells);
}

}  // namespace orrery
