#include "viz/timeline/op_groups.h"

#include <algorithm>

#include <fmt/format.h>

namespace orrery {
namespace {

// Returns what collective an event is by the name of NCCL's kernel ("ncclDevKernel_AllGather_RING_LL"), "" if the name
// does not say it.
std::string_view collective_named(std::string_view kernel) {
  static constexpr std::pair<std::string_view, std::string_view> rows[] = {
      {"AllReduce", "all_reduce"}, {"AllGather", "all_gather"}, {"ReduceScatter", "reduce_scatter"},
      {"Broadcast", "broadcast"},  {"SendRecv", "message"},     {"Reduce", "reduce"}};
  for (const auto& [part, name] : rows) {
    if (kernel.find(part) != std::string_view::npos) return name;
  }
  return "";
}

bool is_compared(const Label& label) {
  return label.kind != Kind::host && label.kind != Kind::wait && label.op_class != KernelClass::other;
}

// Returns the process of `there` whose rank, or whose class of ranks, contains a rank (process p) of `here`; kNone if
// both say which ranks they have and none does. Where ranks are not known, processes are taken in order.
std::uint32_t home_of(const Timeline& here, std::uint32_t p, const Timeline& there) {
  const Process& own = here.processes[p];
  const auto find = [&](auto matches) {
    for (std::uint32_t i = 0; i < there.processes.size(); ++i) {
      if (matches(there.processes[i])) return i;
    }
    return kNone;
  };
  if (own.rank >= 0 && !own.shares_rank) {
    const std::uint32_t same = find([&](const Process& x) { return x.rank == own.rank && !x.shares_rank; });
    if (same != kNone) return same;
  }
  if (own.rank >= 0) {
    const std::uint32_t holds = find([&](const Process& x) {
      return x.rank == own.rank || std::binary_search(x.members.begin(), x.members.end(), own.rank);
    });
    if (holds != kNone) return holds;
    const std::uint32_t held = find([&](const Process& x) {
      return x.rank >= 0 && std::binary_search(own.members.begin(), own.members.end(), x.rank);
    });
    if (held != kNone) return held;
  }
  if (own.coordinates[2] >= 0) {
    const std::uint32_t stage = find([&](const Process& x) { return x.coordinates[2] == own.coordinates[2]; });
    if (stage != kNone) return stage;
  }
  const bool known = own.rank >= 0 && find([](const Process& x) { return x.rank >= 0; }) != kNone;
  return known || there.processes.empty() ? kNone : p % static_cast<std::uint32_t>(there.processes.size());
}

}  // namespace

bool has_few_shapes(const ComparedSide& side, EventId most) {
  EventId count = 0;
  for (EventId e = 0; e < side.t.events() && count <= most; ++e) count += is_compared(side.t.labels[side.t.label[e]]);
  return count <= most;
}

std::uint32_t OpNumbers::number(std::string text) {
  const auto [found, added] = known_.try_emplace(std::move(text), static_cast<std::uint32_t>(texts_.size()));
  if (added) texts_.push_back(found->first);
  return found->second;
}

std::vector<std::uint32_t> OpNumbers::of_labels(const Timeline& t) {
  std::vector<std::uint32_t> numbers;
  for (const Label& label : t.labels)
    numbers.push_back(number(fmt::format("{} ({})", label.name, name_of(label.kind))));
  return numbers;
}

std::string class_text(const Label& label) {
  return std::string(label.op_class == KernelClass::other ? name_of(label.kind) : name_of(label.op_class));
}

std::vector<std::uint32_t> OpNumbers::of_shapes(const ComparedSide& side) {
  const Timeline& t = side.t;
  std::vector<std::uint32_t> numbers(t.events(), kNone);
  for (EventId e = 0; e < t.events(); ++e) {
    const Label& label = t.labels[t.label[e]];
    if (!is_compared(label)) continue;
    std::string shape = shape_of(t, e);
    const EventId op = side.launches.empty() ? kNoEvent : side.launches.op[e];
    if (shape.empty() && op != kNoEvent) shape = shape_of(t, op);
    const std::string words = class_text(label);
    if (shape.empty())
      numbers[e] = number(words + ", shape not known");
    else
      numbers[e] = number(shape.starts_with(words) ? shape : fmt::format("{}: {}", words, shape));
  }
  return numbers;
}

std::vector<std::uint32_t> OpNumbers::of_classes(const ComparedSide& side) {
  const Timeline& t = side.t;
  std::vector<std::uint32_t> numbers(t.events(), kNone), of_label(t.labels.size(), kNone);
  for (std::size_t l = 0; l < t.labels.size(); ++l) {
    if (is_compared(t.labels[l]) && t.labels[l].op_class != KernelClass::collective)
      of_label[l] = number(class_text(t.labels[l]));
  }
  for (EventId e = 0; e < t.events(); ++e) {
    const Label& label = t.labels[t.label[e]];
    numbers[e] = of_label[t.label[e]];
    if (!is_compared(label) || label.op_class != KernelClass::collective) continue;
    const std::string shape = shape_of(t, e);
    const std::string_view words = shape;
    const std::string_view name = shape.empty() ? collective_named(label.name) : words.substr(0, words.find(' '));
    numbers[e] = number(fmt::format("{}: {}", class_text(label), name));
  }
  return numbers;
}

RankFolding fold_ranks(const Timeline& a, const Timeline& b) {
  RankFolding folding;
  std::vector<bool> is_home(a.processes.size(), false);
  for (std::uint32_t p = 0; p < b.processes.size(); ++p) {
    folding.b.push_back(home_of(b, p, a));
    if (folding.b.back() != kNone) is_home[folding.b.back()] = true;
  }
  for (std::uint32_t p = 0; p < a.processes.size(); ++p) {
    const std::uint32_t there = is_home[p] ? kNone : home_of(a, p, b);
    folding.a.push_back(there == kNone || folding.b[there] == kNone ? p : folding.b[there]);
  }
  return folding;
}

std::vector<std::uint32_t> main_tracks(const Timeline& t) {
  std::vector<std::uint32_t> tracks(t.processes.size(), kNone);
  std::vector<Picoseconds> longest(t.processes.size(), 0);
  for (std::uint32_t track = 0; track < t.tracks.size(); ++track) {
    const Track& row = t.tracks[track];
    Picoseconds time = 0;
    for (EventId e = row.first; e < row.first + row.count; ++e)
      time += computes(t.kind(e)) ? t.ends[e] - t.begins[e] : 0;
    if (time <= longest[row.process]) continue;
    longest[row.process] = time;
    tracks[row.process] = track;
  }
  return tracks;
}

}  // namespace orrery
