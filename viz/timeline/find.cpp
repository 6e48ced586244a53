#include "viz/timeline/find.h"

#include <algorithm>
#include <string>

namespace orrery {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return result;
}

}  // namespace

Search search(const Timeline& timeline, std::string_view text) {
  Search s;
  s.labels.assign(timeline.labels.size(), false);
  const std::string wanted = lower(text);
  if (wanted.empty()) return s;
  bool any = false;
  for (std::size_t i = 0; i < timeline.labels.size(); ++i) {
    const Label& label = timeline.labels[i];
    s.labels[i] = lower(label.name).find(wanted) != std::string::npos || name_of(label.kind) == wanted;
    any |= s.labels[i];
  }
  if (!any) return s;
  for (EventId e = 0; e < timeline.events() && s.hits.size() < kMostHits; ++e) {
    if (s.labels[timeline.label[e]]) s.hits.push_back(e);
  }
  std::sort(s.hits.begin(), s.hits.end(), [&](EventId a, EventId b) {
    return timeline.begins[a] != timeline.begins[b] ? timeline.begins[a] < timeline.begins[b] : a < b;
  });
  return s;
}

EventId next_hit(const Search& search, const Timeline& timeline, EventId current, bool forward) {
  if (search.hits.empty()) return kNoEvent;
  if (current == kNoEvent) return forward ? search.hits.front() : search.hits.back();
  const auto before = [&](EventId a, EventId b) {
    return timeline.begins[a] != timeline.begins[b] ? timeline.begins[a] < timeline.begins[b] : a < b;
  };
  if (forward) {
    const auto at = std::upper_bound(search.hits.begin(), search.hits.end(), current, before);
    return at == search.hits.end() ? search.hits.front() : *at;
  }
  const auto at = std::lower_bound(search.hits.begin(), search.hits.end(), current, before);
  return at == search.hits.begin() ? search.hits.back() : *(at - 1);
}

}  // namespace orrery
