#include "viz/timeline/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include <fmt/format.h>

#include "viz/timeline/op_groups.h"
#include "viz/timeline/shown_name.h"

namespace orrery {
namespace {

// An event of one side with what it is matched by. process, step: those of the event itself. group, common_step: those
// to which the event belongs on both sides.
struct MatchEntry {
  std::uint32_t group = 0, what = 0;
  std::int32_t common_step = 0, stream = 0, micro_batch = -1;
  std::int16_t layer = -1, chunk = 0;
  std::uint32_t process = 0;
  std::int32_t step = 0;
  EventId event = 0;
  Picoseconds begin = 0;

  auto key() const { return std::tie(group, common_step, what, stream, micro_batch, layer, chunk); }
  bool same_instance(const MatchEntry& o) const { return process == o.process && step == o.step; }
  bool operator<(const MatchEntry& o) const {
    return std::tuple(key(), process, step, begin, event) < std::tuple(o.key(), o.process, o.step, o.begin, o.event);
  }
};

// By what the entries of one pass are matched, on one side. `what` is by label or by event.
struct MatchPass {
  std::vector<std::uint32_t> groups, what;
  bool by_label = true;
};

std::vector<MatchEntry> entries_of(const ComparedSide& side, const MatchPass& pass, int common_steps,
                                   const std::vector<EventId>& matched) {
  const Timeline& t = side.t;
  const std::vector<std::uint32_t> main = pass.by_label ? std::vector<std::uint32_t>{} : main_tracks(t);
  std::vector<MatchEntry> entries;
  for (std::uint32_t track = 0; track < t.tracks.size(); ++track) {
    const Track& row = t.tracks[track];
    for (EventId e = row.first; e < row.first + row.count; ++e) {
      if (!works(t, e) || matched[e] != kNoEvent) continue;
      const std::uint32_t what = pass.what[pass.by_label ? t.label[e] : e];
      const int step = side.steps.of(e, row.process);
      if (what == kNone || step < 0) continue;
      MatchEntry entry{
          .group = pass.groups[row.process], .what = what, .common_step = std::min(step, common_steps - 1)};
      entry.process = row.process;
      entry.step = step;
      entry.event = e;
      entry.begin = t.begins[e];
      if (pass.by_label) {
        const OpInstance place = t.place(e);
        entry.micro_batch = place.micro_batch;
        entry.layer = place.layer;
        entry.chunk = place.chunk;
      } else if (t.labels[t.label[e]].op_class != KernelClass::collective) {
        entry.stream = track == main[row.process] ? 0 : 1;
      }
      entries.push_back(entry);
    }
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

using MatchEntries = std::span<const MatchEntry>;

// Returns the entries at the beginning of a list for which same(first, entry) holds.
template <class Same>
MatchEntries leading(MatchEntries list, const Same& same) {
  std::size_t count = 0;
  while (count < list.size() && same(list[0], list[count])) ++count;
  return list.first(count);
}

MatchEntries leading_instance(MatchEntries list) {
  return leading(list, [](const MatchEntry& x, const MatchEntry& y) { return x.same_instance(y); });
}

// Matches entries with the same key: the k-th of every instance (rank and step) with the k-th of the other side's first
// instance. equal_counts: whether only instances with as many entries as that one are matched.
void match_alike(MatchEntries own, MatchEntries first_there, bool equal_counts, std::vector<EventId>& result) {
  while (!own.empty()) {
    const MatchEntries instance = leading_instance(own);
    if (!equal_counts || instance.size() == first_there.size()) {
      for (std::size_t k = 0; k < std::min(instance.size(), first_there.size()); ++k)
        result[instance[k].event] = first_there[k].event;
    }
    own = own.subspan(instance.size());
  }
}

void match_entries(MatchEntries a, MatchEntries b, bool equal_counts, Matching& m) {
  const auto same_key = [](const MatchEntry& x, const MatchEntry& y) { return x.key() == y.key(); };
  while (!a.empty() && !b.empty()) {
    if (a[0].key() < b[0].key()) {
      a = a.subspan(1);
    } else if (b[0].key() < a[0].key()) {
      b = b.subspan(1);
    } else {
      const MatchEntries x = leading(a, same_key), y = leading(b, same_key);
      match_alike(x, leading_instance(y), equal_counts, m.there);
      match_alike(y, leading_instance(x), equal_counts, m.back);
      a = a.subspan(x.size());
      b = b.subspan(y.size());
    }
  }
}

EventId count_matched(const std::vector<EventId>& of) {
  return static_cast<EventId>(std::count_if(of.begin(), of.end(), [](EventId e) { return e != kNoEvent; }));
}

// The number of a rank's steps in a timeline, over all its ranks: by what sums are divided for means over both.
double ranks_and_steps(const ComparedSide& side) {
  std::set<std::int64_t> counted;
  double sum = 0;
  for (const Process& p : side.t.processes) {
    const bool has_work = std::any_of(p.tracks.begin(), p.tracks.end(), [&](std::uint32_t track) {
      const Track& row = side.t.tracks[track];
      for (EventId e = row.first; e < row.first + row.count; ++e) {
        if (works(side.t, e)) return true;
      }
      return false;
    });
    if (!has_work || (p.rank >= 0 && p.shares_rank && !counted.insert(p.rank).second)) continue;
    sum += static_cast<double>(p.ranks) * side.steps.count_of(p.rank);
  }
  return std::max(sum, 1.0);
}

using DifferenceRows =
    std::map<std::pair<bool, std::string>, Difference>;  // by whether the row is of a class, and its name

void add_times(const ComparedSide& side, const std::vector<std::uint32_t>& what, const OpNumbers& numbers,
               bool by_label, double Difference::*time, double Difference::*count, DifferenceRows& rows) {
  const double share = 1 / ranks_and_steps(side);
  const Timeline& t = side.t;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>, std::pair<Picoseconds, std::int64_t>> sums;
  for (const Track& row : t.tracks) {
    for (EventId e = row.first; e < row.first + row.count; ++e) {
      if (t.kind(e) == Kind::host || side.steps.of(e, row.process) < 0) continue;
      auto& [sum, events] = sums[{t.label[e], what[by_label ? t.label[e] : e], t.processes[row.process].ranks}];
      sum += t.ends[e] - t.begins[e];
      ++events;
    }
  }
  for (const auto& [place, sum] : sums) {
    const auto& [label, number, ranks] = place;
    const Label& l = t.labels[label];
    const double weight = share * static_cast<double>(ranks);
    for (const bool whole : {true, false}) {
      const std::string name = whole || number == kNone ? class_text(l) : numbers.text(number);
      Difference& d = rows[{whole, name}];
      d.name = name;
      d.shown = by_label && !whole ? fmt::format("{} ({})", shown_name(l), name_of(l.kind)) : name;
      d.kind = l.kind;
      d.whole_class = whole;
      d.*time += weight * seconds(sum.first);
      d.*count += weight * static_cast<double>(sum.second);
    }
  }
}

}  // namespace

Matching match(const ComparedSide& a, const ComparedSide& b) {
  Matching m;
  m.there.assign(a.t.events(), kNoEvent);
  m.back.assign(b.t.events(), kNoEvent);
  const RankFolding folding = fold_ranks(a.t, b.t);
  const int steps = std::min(a.steps.count(), b.steps.count());
  OpNumbers numbers;
  const auto run = [&](MatchPass of_a, MatchPass of_b, bool equal_counts) {
    of_a.groups = folding.a;
    of_b.groups = folding.b;
    match_entries(entries_of(a, of_a, steps, m.there), entries_of(b, of_b, steps, m.back), equal_counts, m);
  };
  run({{}, numbers.of_labels(a.t)}, {{}, numbers.of_labels(b.t)}, false);
  EventId working = 0;
  for (EventId e = 0; e < b.t.events(); ++e) working += works(b.t, e) ? 1 : 0;
  m.by_name = 2 * count_matched(m.back) >= working;
  if (!m.by_name) {
    if (has_few_shapes(a) && has_few_shapes(b))
      run({{}, numbers.of_shapes(a), false}, {{}, numbers.of_shapes(b), false}, true);
    run({{}, numbers.of_classes(a), false}, {{}, numbers.of_classes(b), false}, true);
  }
  m.matched = count_matched(m.back);
  return m;
}

std::vector<Difference> differences(const ComparedSide& a, const ComparedSide& b, bool by_name) {
  OpNumbers numbers;
  DifferenceRows rows;
  const bool shapes = !by_name && has_few_shapes(a) && has_few_shapes(b);
  const auto numbers_of = [&](const ComparedSide& side) {
    return by_name ? numbers.of_labels(side.t) : shapes ? numbers.of_shapes(side) : numbers.of_classes(side);
  };
  const auto of_a = numbers_of(a), of_b = numbers_of(b);
  add_times(a, of_a, numbers, by_name, &Difference::a, &Difference::count_a, rows);
  add_times(b, of_b, numbers, by_name, &Difference::b, &Difference::count_b, rows);
  std::vector<Difference> result;
  for (const auto& [key, row] : rows) result.push_back(row);
  std::stable_sort(result.begin(), result.end(), [](const Difference& x, const Difference& y) {
    return std::pair(!x.whole_class, -std::abs(x.more())) < std::pair(!y.whole_class, -std::abs(y.more()));
  });
  return result;
}

Comparison compare(const Timeline& a, const Timeline& b) {
  const ComparedSide first(a), second(b);
  Comparison c;
  c.matching = match(first, second);
  c.rows = differences(first, second, c.matching.by_name);
  c.offset = second.steps.first_work() - first.steps.first_work();
  c.step_a = first.steps.mean_time();
  c.step_b = second.steps.mean_time();
  return c;
}

double relative_change(const Timeline& a, const Timeline& b, const Matching& m, EventId e) {
  const EventId other = m.there[e];
  if (other == kNoEvent) return 0;
  const auto own = static_cast<double>(a.ends[e] - a.begins[e]);
  const auto theirs = static_cast<double>(b.ends[other] - b.begins[other]);
  return theirs <= 0 ? (own > 0 ? 1 : 0) : own / theirs - 1;
}

}  // namespace orrery
