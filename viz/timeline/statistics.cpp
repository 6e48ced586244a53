#include "viz/timeline/statistics.h"

#include <algorithm>
#include <set>

namespace orrery {
namespace {

// Calls function(event, process) for the events that begin in a range of time.
template <class F>
void for_each_beginning(const Timeline& t, Picoseconds from, Picoseconds to, const F& function) {
  for (const Track& track : t.tracks) {
    const auto begins = t.begins.begin() + track.first;
    EventId e = track.first + static_cast<EventId>(std::lower_bound(begins, begins + track.count, from) - begins);
    for (; e < track.first + track.count && t.begins[e] < to; ++e) function(e, track.process);
  }
}

// Returns the duration below which a share of the durations, which it reorders, lies.
Picoseconds quantile(std::vector<Picoseconds>& durations, double share) {
  const auto at = static_cast<std::size_t>(share * static_cast<double>(durations.size() - 1) + 0.5);
  std::nth_element(durations.begin(), durations.begin() + static_cast<std::ptrdiff_t>(at), durations.end());
  return durations[at];
}

}  // namespace

OpStatistics statistics_of(std::uint32_t label, std::vector<Picoseconds>& all) {
  OpStatistics s{.label = label, .count = std::ssize(all)};
  for (const Picoseconds d : all) s.total += d;
  s.least = *std::min_element(all.begin(), all.end());
  s.most = *std::max_element(all.begin(), all.end());
  s.median = quantile(all, 0.5);
  s.p95 = quantile(all, 0.95);
  return s;
}

bool is_of_hosts(const Timeline& t) {
  return std::all_of(t.labels.begin(), t.labels.end(), [](const Label& l) { return l.kind == Kind::host; });
}

std::vector<OpStatistics> op_statistics(const Timeline& t, Picoseconds from, Picoseconds to) {
  std::vector<std::vector<Picoseconds>> durations(t.labels.size());
  const bool hosts = is_of_hosts(t);
  for_each_beginning(t, from, to, [&](EventId e, std::uint32_t) {
    if (hosts || t.kind(e) != Kind::host) durations[t.label[e]].push_back(t.ends[e] - t.begins[e]);
  });
  std::vector<OpStatistics> result;
  for (std::uint32_t label = 0; label < durations.size(); ++label) {
    std::vector<Picoseconds>& all = durations[label];
    if (all.empty()) continue;
    result.push_back(statistics_of(label, all));
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const OpStatistics& a, const OpStatistics& b) { return a.total > b.total; });
  return result;
}

Histogram histogram_of(const std::vector<Picoseconds>& durations, std::size_t bins) {
  Histogram h;
  h.counts.assign(std::max<std::size_t>(bins, 1), 0);
  if (durations.empty()) return h;
  const auto [least, most] = std::minmax_element(durations.begin(), durations.end());
  h.least = *least;
  h.width = (*most - *least) / std::ssize(h.counts) + 1;
  for (const Picoseconds d : durations) ++h.counts[static_cast<std::size_t>((d - h.least) / h.width)];
  return h;
}

void SpreadSums::add(std::uint32_t process, std::int32_t micro_batch, Picoseconds duration) {
  durations_.push_back(duration);
  Sum& sum = sums_[process][micro_batch];
  sum.time += duration;
  ++sum.count;
}

OpSpread SpreadSums::spread() const {
  OpSpread spread;
  spread.durations = durations_;
  std::set<std::int32_t> columns;
  for (const auto& [process, by_column] : sums_) {
    for (const auto& [column, sum] : by_column) columns.insert(column);
  }
  spread.columns = {columns.begin(), columns.end()};
  for (const auto& [process, by_column] : sums_) {
    spread.processes.push_back(process);
    std::vector<Picoseconds>& row = spread.mean.emplace_back(spread.columns.size(), -1);
    for (std::size_t c = 0; c < row.size(); ++c) {
      const auto found = by_column.find(spread.columns[c]);
      if (found != by_column.end()) row[c] = found->second.time / found->second.count;
    }
  }
  return spread;
}

OpSpread spread_of(const Timeline& t, std::uint32_t label, Picoseconds from, Picoseconds to) {
  SpreadSums sums;
  for_each_beginning(t, from, to, [&](EventId e, std::uint32_t process) {
    if (t.label[e] == label) sums.add(process, t.place(e).micro_batch, t.ends[e] - t.begins[e]);
  });
  return sums.spread();
}

}  // namespace orrery
