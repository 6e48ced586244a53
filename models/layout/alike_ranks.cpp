#include "models/layout/alike_ranks.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace orrery {
namespace {

// The result of comparing ranks by one of their coordinates, such as the data-parallel index. Two values of the
// coordinate are alike if ranks that differ in this coordinate alone have the same marks. For each value, `first` is
// the smallest value that is alike, and `marked` says whether any rank with this value has a mark.
struct Alike {
  std::vector<std::int64_t> first;
  std::vector<bool> marked;
};

Alike alike(const std::vector<Coordinates>& at, const std::vector<std::uint32_t>& marks,
            std::int64_t Coordinates::*axis, std::int64_t values) {
  using Others = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  std::vector<std::map<Others, std::uint32_t>> known(static_cast<std::size_t>(values));
  for (std::size_t r = 0; r < marks.size(); ++r) {
    if (marks[r] == 0) continue;
    Coordinates others = at[r];
    const std::int64_t value = std::exchange(others.*axis, 0);
    known[static_cast<std::size_t>(value)][{others.data, others.tensor, others.context, others.pipeline}] = marks[r];
  }
  Alike result;
  for (const auto& own : known) {
    result.first.push_back(std::find(known.begin(), known.end(), own) - known.begin());
    result.marked.push_back(!own.empty());
  }
  return result;
}

// Returns the part that one coordinate of a class's ranks (such as the data-parallel index) contributes to the name of
// the class: ", replica 3", ", replica 3 and 2 alike", ", other replicas"; empty if the ranks are alike for all values
// of the coordinate.
std::string class_name(std::string_view what, std::string_view others, const Alike& all, std::int64_t value) {
  const auto at = static_cast<std::size_t>(value);
  const auto same = std::count(all.first.begin(), all.first.end(), all.first[at]);
  if (same == std::ssize(all.first)) return "";
  if (!all.marked[at]) return fmt::format(", {}", others);
  return fmt::format(", {} {}{}", what, all.first[at], same > 1 ? fmt::format(" and {} alike", same - 1) : "");
}

// Changes the result of a comparison by one coordinate (such as the tensor-parallel index) as if all values of the
// coordinate were different, so that the ranks of each value form classes of their own.
void keep_apart(Alike& all) {
  std::iota(all.first.begin(), all.first.end(), 0);
  all.marked.assign(all.marked.size(), true);
}

// Changes the result of a comparison by one coordinate as if values at different places in sets of `size` values were
// different. Two values at the same place are alike if all values of their sets are, one by one.
void keep_places_apart(Alike& all, std::int64_t size) {
  const auto before = all.first;
  const auto same_set = [&](std::int64_t a, std::int64_t b) {
    return std::equal(before.begin() + a * size, before.begin() + (a + 1) * size, before.begin() + b * size);
  };
  for (std::int64_t value = 0; value < std::ssize(before); ++value) {
    std::int64_t set = 0;
    while (!same_set(set, value / size)) ++set;
    all.first[static_cast<std::size_t>(value)] = set * size + value % size;
  }
  all.marked.assign(all.marked.size(), true);
}

// Returns the number of neighbouring replicas that all groups with a part of the replicas have whole; 1: there are no
// such groups.
std::int64_t replicas_together(const Draft& draft) {
  const std::int64_t data = draft.facts.spec.strategy.data;
  std::int64_t together = 1;
  for (const GroupTable& table : draft.plan.dimensions) {
    if (table.groups.empty()) continue;
    std::int64_t last = 0;
    bool neighbours = true;
    for (const std::int32_t r : table.groups.front()) {
      const std::int64_t replica = draft.coordinates[static_cast<std::size_t>(r)].data;
      neighbours = neighbours && replica <= last + 1;
      last = std::max(last, replica);
    }
    if (neighbours && last + 1 < data && data % (last + 1) == 0) together = std::lcm(together, last + 1);
  }
  return together;
}

// Returns for each worker the first rank of its class.
std::vector<std::int32_t> first_ranks(const Draft& draft, const std::vector<std::string>& names) {
  std::map<std::pair<std::int64_t, std::string_view>, std::int32_t> first;
  std::vector<std::int32_t> result;
  for (std::size_t r = 0; r < names.size(); ++r)
    result.push_back(
        first.try_emplace({draft.coordinates[r].place, names[r]}, static_cast<std::int32_t>(r)).first->second);
  return result;
}

// Returns whether the first rank of each class stands for all its ranks: its groups contain the first ranks of the
// classes of all their members, and groups of other ranks of the class have members of the same classes.
bool first_ranks_stand_for_all(const Draft& draft, const std::vector<std::string>& names) {
  const std::vector<std::int32_t> first = first_ranks(draft, names);
  for (const GroupTable& table : draft.plan.dimensions) {
    std::map<std::int32_t, std::set<std::int32_t>> classes_of;  // by the first rank of a class, those in its groups
    for (const auto& group : table.groups) {
      std::set<std::int32_t> classes;
      for (const std::int32_t r : group) {
        if (r < std::ssize(first)) classes.insert(first[static_cast<std::size_t>(r)]);
      }
      for (const std::int32_t c : classes) {
        if (classes_of.try_emplace(c, classes).first->second != classes) return false;
        if (table.member_of[static_cast<std::size_t>(c)] != table.member_of[static_cast<std::size_t>(*classes.begin())])
          return false;
      }
    }
  }
  return true;
}

struct Axes {
  Alike replicas, tensors, contexts;
};

std::vector<std::string> names_of(const std::vector<Coordinates>& at, const Axes& axes,
                                  std::vector<std::string> names) {
  for (std::size_t r = 0; r < names.size(); ++r) {
    names[r] += class_name("replica", "other replicas", axes.replicas, at[r].data) +
                class_name("tensor", "other tensor ranks", axes.tensors, at[r].tensor) +
                class_name("context", "other context ranks", axes.contexts, at[r].context);
  }
  return names;
}

std::int64_t classes_in(const Draft& draft, const std::vector<std::string>& names) {
  std::set<std::int32_t> classes;
  for (const std::int32_t r : first_ranks(draft, names)) classes.insert(r);
  return std::ssize(classes);
}

}  // namespace

std::vector<std::string> alike_ranks(const Draft& draft, const std::vector<std::string>& kinds,
                                     const std::vector<std::uint32_t>& marks, std::int64_t most) {
  const Strategy& s = draft.facts.spec.strategy;
  const std::vector<Coordinates>& at = draft.coordinates;
  Axes axes = {alike(at, marks, &Coordinates::data, s.data), alike(at, marks, &Coordinates::tensor, s.tensor),
               alike(at, marks, &Coordinates::context, s.context)};
  const std::function<void()> steps[] = {[] {}, [&] { keep_places_apart(axes.replicas, replicas_together(draft)); },
                                         [&] {
                                           keep_apart(axes.tensors);
                                           keep_apart(axes.contexts);
                                         },
                                         [&] { keep_apart(axes.replicas); }};
  for (const auto& tell_more_apart : steps) {
    tell_more_apart();
    std::vector<std::string> names = names_of(at, axes, kinds);
    if (classes_in(draft, names) > most) return {};
    if (first_ranks_stand_for_all(draft, names)) return names;
  }
  return {};
}

}  // namespace orrery
