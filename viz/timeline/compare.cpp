#include "viz/timeline/compare.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <map>
#include <string_view>
#include <tuple>

namespace orrery {
namespace {

// Numbers labels in such a way that equal labels of two timelines get the same number.
class CommonLabels {
 public:
  std::vector<std::uint32_t> numbers_of(const Timeline& t) {
    std::vector<std::uint32_t> numbers;
    for (const Label& label : t.labels)
      numbers.push_back(
          known_.try_emplace({label.name, label.kind}, static_cast<std::uint32_t>(known_.size())).first->second);
    return numbers;
  }

 private:
  std::map<std::pair<std::string, Kind>, std::uint32_t> known_;
};

struct Identity {
  std::int64_t rank = 0;
  std::uint32_t label = 0;
  std::int32_t micro_batch = 0;
  std::int32_t layer = 0, chunk = 0;
  Picoseconds begin = 0;
  EventId event = 0;

  auto key() const { return std::tie(rank, label, micro_batch, layer, chunk); }
  bool operator<(const Identity& o) const {
    return std::tie(rank, label, micro_batch, layer, chunk, begin, event) <
           std::tie(o.rank, o.label, o.micro_batch, o.layer, o.chunk, o.begin, o.event);
  }
};

bool ranks_known(const Timeline& t) {
  return std::all_of(t.processes.begin(), t.processes.end(), [](const Process& p) { return p.rank >= 0; });
}

std::vector<Identity> identities(const Timeline& t, const std::vector<std::uint32_t>& labels, bool by_rank) {
  std::vector<Identity> all;
  all.reserve(t.events());
  for (const Track& track : t.tracks) {
    const std::int64_t rank = by_rank ? t.processes[track.process].rank : t.processes[track.process].order;
    for (EventId e = track.first; e < track.first + track.count; ++e) {
      if (t.kind(e) == Kind::wait || t.kind(e) == Kind::host) continue;
      const OpInstance place = t.place(e);
      all.push_back({rank, labels[t.label[e]], place.micro_batch, place.layer, place.chunk, t.begins[e], e});
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

Matching match(const Timeline& a, const Timeline& b) {
  Matching m;
  m.there.assign(a.events(), kNoEvent);
  m.back.assign(b.events(), kNoEvent);
  CommonLabels common;
  const bool by_rank = ranks_known(a) && ranks_known(b);
  const auto own = identities(a, common.numbers_of(a), by_rank);
  const auto other = identities(b, common.numbers_of(b), by_rank);
  auto x = own.begin();
  auto y = other.begin();
  while (x != own.end() && y != other.end()) {
    if (x->key() < y->key()) {
      ++x;
    } else if (y->key() < x->key()) {
      ++y;
    } else {
      m.there[x->event] = y->event;
      m.back[y->event] = x->event;
      ++m.matched;
      ++x;
      ++y;
    }
  }
  return m;
}

std::vector<Difference> differences(const Timeline& a, const Timeline& b) {
  std::map<std::pair<std::string_view, Kind>, Difference> rows;
  const auto add = [&](const Timeline& t, bool first) {
    for (const Track& track : t.tracks) {
      const std::int64_t ranks = t.processes[track.process].ranks;
      for (EventId e = track.first; e < track.first + track.count; ++e) {
        if (t.kind(e) == Kind::host) continue;
        Difference& row = rows[{t.name(e), t.kind(e)}];
        (first ? row.a : row.b) += (t.ends[e] - t.begins[e]) * ranks;
        (first ? row.count_a : row.count_b) += ranks;
      }
    }
  };
  add(a, true);
  add(b, false);
  std::vector<Difference> result;
  for (auto& [key, row] : rows) {
    row.name = key.first;
    row.kind = key.second;
    result.push_back(row);
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Difference& x, const Difference& y) { return std::abs(x.more()) > std::abs(y.more()); });
  return result;
}

double relative_change(const Timeline& a, const Timeline& b, const Matching& m, EventId e) {
  const EventId other = m.there[e];
  if (other == kNoEvent) return 0;
  const auto own = static_cast<double>(a.ends[e] - a.begins[e]);
  const auto theirs = static_cast<double>(b.ends[other] - b.begins[other]);
  return theirs <= 0 ? (own > 0 ? 1 : 0) : own / theirs - 1;
}

}  // namespace orrery
