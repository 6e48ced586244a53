#pragma once

// Two slow allocators that follow the same rules as CachingAllocator over plain lists, for its property tests. They
// share no code or data structure with it.

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sim/memory/allocator.h"

namespace orrery {

inline constexpr Bytes kMiB = 1 << 20;

struct Counts {
  Bytes allocated = 0, requested = 0, active = 0, reserved = 0, inactive_split = 0;
  std::int64_t retries = 0, out_of_memory = 0;
  auto operator<=>(const Counts&) const = default;
};

inline void PrintTo(const Counts& c, std::ostream* out) {
  *out << c.allocated << ' ' << c.requested << ' ' << c.active << ' ' << c.reserved << ' ' << c.inactive_split << ' '
       << c.retries << ' ' << c.out_of_memory;
}

inline Counts counts(const AllocatorStats& s) {
  return {s.allocated.now,      s.requested.now, s.active.now,   s.reserved.now,
          s.inactive_split.now, s.retries,       s.out_of_memory};
}

struct Used {
  Bytes size, requested;
  bool pending;
};
using SegmentPlace = std::pair<int, Bytes>;  // segment, offset in it

// The base of the two reference allocators. A segment keeps only the used parts; free parts are the gaps, computed
// again for each request, so nothing is ever split or merged.
struct Reference {
  virtual ~Reference() = default;
  explicit Reference(Bytes bytes) : capacity(bytes) {}
  virtual std::optional<SegmentPlace> fit(Bytes size, int stream) = 0;
  virtual std::optional<SegmentPlace> grow(Bytes size, int stream) = 0;
  virtual void drop_unused() = 0;
  virtual Bytes reserved() const = 0;
  virtual Bytes inactive_split() const = 0;
  virtual Bytes block_size(SegmentPlace at, Bytes size) const = 0;

  std::optional<SegmentPlace> malloc(Bytes bytes, int stream, Picoseconds now) {
    process(now);
    const Bytes size = (bytes + 511) / 512 * 512;
    auto at = fit(size, stream);
    if (!at) at = grow(size, stream);
    if (!at) {
      ++retries;
      process(INT64_MAX);
      drop_unused();
      at = grow(size, stream);  // memory that events freed in split segments is not considered
      if (!at) ++out_of_memory;
    }
    if (at) used[*at] = {block_size(*at, size), bytes, false};
    return at;
  }
  void free(SegmentPlace at) { used.erase(at); }
  void free_after(SegmentPlace at, Picoseconds until) {
    used[at].pending = true;
    waiting.push_back({until, at});
  }
  void process(Picoseconds now) {
    for (const auto& [until, at] : waiting) {
      if (until <= now) used.erase(at);
    }
    std::erase_if(waiting, [&](const auto& w) { return w.first <= now; });
  }
  // Gaps between used blocks of [0, size) of a segment.
  std::vector<std::pair<Bytes, Bytes>> gaps(int segment, Bytes size) const {
    std::vector<std::pair<Bytes, Bytes>> result;
    Bytes at = 0;
    for (auto it = used.lower_bound({segment, 0}); it != used.end() && it->first.first == segment; ++it) {
      if (it->first.second > at) result.push_back({at, it->first.second});
      at = it->first.second + it->second.size;
    }
    if (at < size) result.push_back({at, size});
    return result;
  }
  Counts now() const {
    Counts c{0, 0, 0, reserved(), inactive_split(), retries, out_of_memory};
    for (const auto& [at, b] : used) {
      c.allocated += b.pending ? 0 : b.size;
      c.requested += b.requested;
      c.active += b.size;
    }
    return c;
  }

  Bytes capacity;
  std::map<SegmentPlace, Used> used;
  std::vector<std::pair<Picoseconds, SegmentPlace>> waiting;
  std::int64_t retries = 0, out_of_memory = 0;
};

struct FixedReference : Reference {
  struct Segment {
    int stream;
    bool large;
    Bytes size;
  };
  using Reference::Reference;

  std::optional<SegmentPlace> fit(Bytes size, int stream) override {
    std::optional<std::tuple<Bytes, int, Bytes>> best;
    for (const auto& [id, s] : segments) {
      if (s.stream != stream || s.large != (size > kMiB)) continue;
      for (const auto& [from, to] : gaps(id, s.size)) {
        const std::tuple candidate{to - from, id, from};
        if (to - from >= size && (!best || candidate < *best)) best = candidate;
      }
    }
    if (!best) return std::nullopt;
    return SegmentPlace{std::get<1>(*best), std::get<2>(*best)};
  }
  std::optional<SegmentPlace> grow(Bytes size, int stream) override {
    const bool large = size > kMiB;
    const Bytes bytes = !large             ? 2 * kMiB
                        : size < 10 * kMiB ? 20 * kMiB
                                           : (size + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
    if (reserved() + bytes > capacity) return std::nullopt;
    segments[++last] = {stream, large, bytes};
    return SegmentPlace{last, 0};
  }
  Bytes block_size(SegmentPlace at, Bytes size) const override {
    const Segment& s = segments.at(at.first);
    for (const auto& [from, to] : gaps(at.first, s.size)) {
      if (from == at.second && to - from - size <= (s.large ? kMiB : 0)) return to - from;
    }
    return size;
  }
  void drop_unused() override {
    std::erase_if(segments, [&](const auto& s) { return whole(s.first, s.second.size); });
  }
  bool whole(int id, Bytes size) const {
    const auto g = gaps(id, size);
    return g.size() == 1 && g[0].second - g[0].first == size;
  }
  Bytes reserved() const override {
    Bytes sum = 0;
    for (const auto& [id, s] : segments) sum += s.size;
    return sum;
  }
  Bytes inactive_split() const override {
    Bytes sum = 0;
    for (const auto& [id, s] : segments) {
      if (whole(id, s.size)) continue;
      for (const auto& [from, to] : gaps(id, s.size)) sum += to - from;
    }
    return sum;
  }

  std::map<int, Segment> segments;
  int last = 0;
};

// Reference for expandable segments: one range per stream and pool (test traces never need a second), and a flag per
// page. Unused bytes of mapped pages are free; unmapped pages can become free.
struct ExpandableReference : Reference {
  struct Range {
    Bytes page;
    std::vector<bool> mapped;
    Bytes size() const { return page * static_cast<Bytes>(mapped.size()); }
  };
  using Pieces = std::vector<std::tuple<Bytes, Bytes, bool>>;  // from, to, mapped
  using Reference::Reference;

  // Gaps, cut at the borders between mapped and unmapped pages.
  Pieces pieces(int id) const {
    const Range& r = ranges.at(id);
    Pieces result;
    for (const auto& [from, to] : gaps(id, r.size())) {
      for (Bytes at = from; at < to;) {
        const bool mapped = r.mapped[static_cast<std::size_t>(at / r.page)];
        const Bytes end = std::min(to, (at / r.page + 1) * r.page);
        if (!result.empty() && std::get<1>(result.back()) == at && std::get<2>(result.back()) == mapped) {
          std::get<1>(result.back()) = end;
        } else {
          result.push_back({at, end, mapped});
        }
        at = end;
      }
    }
    return result;
  }
  std::optional<Bytes> best_fit(const Pieces& all, Bytes size) const {
    std::vector<std::tuple<Bytes, Bytes, Bytes>> fits;  // size, from, size with what can be mapped behind it
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& [from, to, mapped] = all[i];
      if (!mapped || to - from < size) continue;
      const bool grows = i + 1 < all.size() && std::get<0>(all[i + 1]) == to;
      fits.push_back({to - from, from, (grows ? std::get<1>(all[i + 1]) : to) - from});
    }
    if (fits.empty()) return std::nullopt;
    std::sort(fits.begin(), fits.end());
    std::size_t best = 0;
    while (best + 1 < fits.size() && std::get<2>(fits[best + 1]) < std::get<2>(fits[best])) ++best;
    return std::get<1>(fits[best]);
  }
  // Lowest start of a run of gaps that begins with an unmapped piece or the free one right before it.
  Bytes room(const Pieces& all, Bytes size) const {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (std::get<2>(all[i])) continue;
      const std::size_t first = i > 0 && std::get<1>(all[i - 1]) == std::get<0>(all[i]) ? i - 1 : i;
      std::size_t last = first;
      while (last + 1 < all.size() && std::get<1>(all[last]) == std::get<0>(all[last + 1])) ++last;
      if (std::get<1>(all[last]) - std::get<0>(all[first]) >= size) return std::get<0>(all[first]);
    }
    ADD_FAILURE() << "the range of addresses is too small for this trace";
    return 0;
  }
  std::optional<SegmentPlace> fit(Bytes size, int stream) override {
    const int id = 2 * stream + (size > kMiB);
    if (!ranges.count(id)) return std::nullopt;
    const auto at = best_fit(pieces(id), size);
    if (!at) return std::nullopt;
    return SegmentPlace{id, *at};
  }
  std::optional<SegmentPlace> grow(Bytes size, int stream) override {
    const int id = 2 * stream + (size > kMiB);
    if (!ranges.count(id)) {
      const Bytes page = size > kMiB ? 20 * kMiB : 2 * kMiB;
      ranges[id] = {page, std::vector<bool>(static_cast<std::size_t>((capacity + capacity / 8 + page - 1) / page))};
    }
    Range& r = ranges[id];
    const Pieces all = pieces(id);
    const Bytes from = room(all, size);
    for (const auto& [a, b, mapped] : all) {  // map piece by piece; a piece is mapped as a whole or not at all
      if (mapped || a < from || a >= from + size) continue;
      const Bytes pages = (std::min(b, from + size) - a + r.page - 1) / r.page;
      if (reserved() + pages * r.page > capacity) return std::nullopt;
      for (Bytes p = 0; p < pages; ++p) r.mapped[static_cast<std::size_t>(a / r.page + p)] = true;
    }
    return SegmentPlace{id, from};
  }
  Bytes block_size(SegmentPlace, Bytes size) const override { return size; }
  void drop_unused() override {
    for (auto& [id, r] : ranges) {
      for (const auto& [from, to, mapped] : pieces(id)) {
        for (Bytes p = (from + r.page - 1) / r.page; p < to / r.page; ++p)
          r.mapped[static_cast<std::size_t>(p)] = false;
      }
    }
  }
  Bytes reserved() const override {
    Bytes sum = 0;
    for (const auto& [id, r] : ranges) sum += r.page * std::count(r.mapped.begin(), r.mapped.end(), true);
    return sum;
  }
  Bytes inactive_split() const override { return 0; }

  std::map<int, Range> ranges;
};

}  // namespace orrery
