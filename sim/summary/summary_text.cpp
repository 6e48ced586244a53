#include "sim/summary/summary_text.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "models/base/natural_order.h"
#include "sim/print/index_ranges.h"
#include "sim/print/table.h"

namespace orrery {
namespace {

double time_share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string percent_of(std::int64_t part, std::int64_t whole) {
  return fmt::format("{:.1f}", 100 * time_share(part, whole));
}
std::string counted(std::int64_t n) { return grouped(static_cast<double>(n)); }
std::string counted_words(std::int64_t n, std::string_view what) {
  return fmt::format("{} {}{}", counted(n), what, n == 1 ? "" : "s");
}

std::string unit_word(const Scale& scale) { return std::string(scale.unit); }

// A text on the events that a summary leaves out, by category, the most frequent first.
std::string left_out_text(const std::map<std::string, std::int64_t>& left_out) {
  static constexpr std::size_t kMostShown = 8;
  std::vector<std::pair<std::string, std::int64_t>> order(left_out.begin(), left_out.end());
  std::ranges::stable_sort(order, {}, [](const auto& entry) { return -entry.second; });
  std::int64_t all = 0, shown = 0;
  std::string text;
  for (std::size_t i = 0; i < order.size(); ++i) {
    all += order[i].second;
    if (i >= kMostShown) continue;
    shown += order[i].second;
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", order[i].first, counted(order[i].second));
  }
  if (all > shown) text += fmt::format(", others {}", counted(all - shown));
  return all == 0 ? "" : fmt::format("  {} left out, by category: {}\n", counted_words(all, "event"), text);
}

std::string summary_head(const TraceSummary& s) {
  const auto files = static_cast<std::int64_t>(s.files.size());
  std::string text = fmt::format("{}, {}, {}\n", counted_words(files, "file"), counted_words(s.events, "event"),
                                 counted_words(s.kernels, "kernel"));
  if (!s.ranks.empty() && !s.ranks[0].device.empty()) text += fmt::format("  on {}\n", s.ranks[0].device);
  text += fmt::format("  {} of kernel time in known classes\n", percent_text(s.classified()));
  static constexpr std::string_view kWays[] = {"", "by id", "by launch, thread and time", "to an annotation",
                                               "to ops of the plan"};
  text += fmt::format("  {} of kernels tied to what launched them", percent_text(time_share(s.tied(), s.kernels)));
  std::string_view between = ": ";
  for (std::size_t t = 1; t < kTies; ++t) {
    if (s.ties[t] == 0) continue;
    text += fmt::format("{}{} {}", between, counted(s.ties[t]), kWays[t]);
    between = ", ";
  }
  text += '\n';
  if (s.untimed > 0) text += fmt::format("  {} without a time left out\n", counted_words(s.untimed, "kernel"));
  text += left_out_text(s.left_out);
  return text;
}

constexpr std::size_t kMostRankRows = 32;  // the most rows of the tables of ranks

// One rank that stands for several: the means of their times, and the largest of their peaks of memory. Ranks that mark
// no steps do not count in the mean step.
RankTotal mean_of(std::span<const RankTotal> ranks) {
  const auto count = static_cast<std::int64_t>(ranks.size());
  if (count == 1) return ranks[0];
  const auto marked = std::ranges::count_if(ranks, [](const RankTotal& r) { return r.steps.count > 0; });
  RankTotal mean;
  mean.name = fmt::format("{} to {}", ranks.front().name, ranks.back().name);
  for (const RankTotal& r : ranks) {
    for (std::int64_t DeviceTimes::*const part :
         {&DeviceTimes::window, &DeviceTimes::compute, &DeviceTimes::exposed_communication, &DeviceTimes::exposed_copy,
          &DeviceTimes::communication, &DeviceTimes::copy, &DeviceTimes::idle_host, &DeviceTimes::idle_kernel,
          &DeviceTimes::idle_peers, &DeviceTimes::idle_other})
      mean.times.*part += r.times.*part / count;
    mean.steps.count = std::max(mean.steps.count, r.steps.count);
    if (r.steps.count > 0) mean.steps.sum += r.steps.sum / r.steps.count / marked;
    mean.allocated = std::max(mean.allocated, r.allocated);
    mean.reserved = std::max(mean.reserved, r.reserved);
  }
  mean.steps.sum *= mean.steps.count;
  return mean;
}

// The ranks by their numbers, since shells list rank 10 before rank 2, or as many groups of neighbouring ranks as the
// tables have room for.
std::vector<RankTotal> shown_ranks(std::vector<RankTotal> ranks) {
  std::ranges::stable_sort(ranks, in_natural_order, &RankTotal::name);
  std::vector<RankTotal> shown;
  for (const IndexRange& row : index_ranges(ranks.size(), kMostRankRows))
    shown.push_back(mean_of(std::span(ranks).subspan(row.begin, row.size())));
  return shown;
}

Table rank_table(const std::vector<RankTotal>& ranks) {
  Table t;
  std::int64_t longest = 0, longest_step = 0;
  for (const RankTotal& r : ranks) {
    longest = std::max(longest, r.times.window);
    longest_step = std::max(longest_step, r.steps.count == 0 ? 0 : r.steps.sum / r.steps.count);
  }
  const Scale scale = time_scale(seconds_of(longest)), step_scale = time_scale(seconds_of(longest_step));
  t.columns = {{"where the time goes", "", Align::left},
               {"time", unit_word(scale)},
               {"compute", "%"},
               {"exposed comm", "%"},
               {"exposed copy", "%"},
               {"idle", "%"},
               {"of which host late", "%"},
               {"short gaps", "%"},
               {"other ranks", "%"},
               {"other", "%"},
               {"all comm", "%"},
               {"all copy", "%"}};
  const bool steps = longest_step > 0;
  if (steps) t.columns.insert(t.columns.end(), {{"steps", ""}, {"mean step", unit_word(step_scale)}});
  for (const RankTotal& r : ranks) {
    const DeviceTimes& d = r.times;
    std::vector<std::string> row = {r.name, number(seconds_of(d.window), scale)};
    for (const std::int64_t part : {d.compute, d.exposed_communication, d.exposed_copy, d.idle(), d.idle_host,
                                    d.idle_kernel, d.idle_peers, d.idle_other, d.communication, d.copy})
      row.push_back(percent_of(part, d.window));
    if (steps && r.steps.count > 0) {
      row.push_back(counted(r.steps.count));
      row.push_back(number(seconds_of(r.steps.sum / r.steps.count), step_scale));
    }
    t.rows.push_back(std::move(row));
  }
  return t;
}

Table memory_table(const std::vector<RankTotal>& ranks) {
  double most = 0;
  for (const RankTotal& r : ranks) most = std::max(most, static_cast<double>(std::max(r.allocated, r.reserved)));
  const Scale scale = memory_scale(most);
  Table t;
  t.columns = {{"peak of memory", "", Align::left}, {"allocated", unit_word(scale)}, {"reserved", unit_word(scale)}};
  for (const RankTotal& r : ranks) {
    const auto cell = [&](std::int64_t bytes) {
      return bytes == 0 ? std::string("-") : number(static_cast<double>(bytes), scale);
    };
    if (r.allocated + r.reserved > 0) t.rows.push_back({r.name, cell(r.allocated), cell(r.reserved)});
  }
  return t;
}

Table class_table(const TraceSummary& s) {
  std::vector<std::size_t> order;
  std::int64_t longest = 0;
  for (std::size_t c = 0; c < kKernelClasses; ++c) {
    if (s.classes[c].count > 0) order.push_back(c);
    longest = std::max(longest, s.classes[c].time);
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t c) { return -s.classes[c].time; });
  const Scale scale = time_scale(seconds_of(longest));
  Table t;
  t.columns = {{"class of kernels", "", Align::left}, {"count", ""}, {"time", unit_word(scale)}, {"share", "%"}};
  for (const std::size_t c : order) {
    const ClassTotal& total = s.classes[c];
    t.rows.push_back({std::string(name_of(static_cast<KernelClass>(c))), counted(total.count),
                      number(seconds_of(total.time), scale), percent_of(total.time, s.time)});
  }
  return t;
}

Table kernel_table(const TraceSummary& s, std::size_t top) {
  Table t;
  if (s.by_kernel.empty()) return t;
  const Scale scale = time_scale(seconds_of(s.by_kernel[0].total.time));
  t.columns = {{"kernel", "", Align::left},
               {"class", "", Align::left},
               {"count", ""},
               {"time", unit_word(scale)},
               {"share", "%"},
               {"mean", "us"},
               {"launched by", "", Align::left}};
  for (std::size_t i = 0; i < std::min(top, s.by_kernel.size()); ++i) {
    const KernelTotal& k = s.by_kernel[i];
    t.rows.push_back(
        {k.name, std::string(name_of(k.kernel_class)), counted(k.total.count), number(seconds_of(k.total.time), scale),
         percent_of(k.total.time, s.time),
         fmt::format("{:.1f}", static_cast<double>(k.total.time) / 1e3 / static_cast<double>(k.total.count)),
         k.launched_by});
  }
  return t;
}

Table operator_table(const TraceSummary& s, std::size_t top) {
  Table t;
  if (s.by_operator.empty()) return t;
  const Scale scale = time_scale(seconds_of(s.by_operator[0].total.time));
  t.columns = {{"operator", "", Align::left}, {"kernels", ""}, {"time", unit_word(scale)}, {"share", "%"}};
  for (std::size_t i = 0; i < std::min(top, s.by_operator.size()); ++i) {
    const OperatorTotal& o = s.by_operator[i];
    t.rows.push_back(
        {o.name, counted(o.total.count), number(seconds_of(o.total.time), scale), percent_of(o.total.time, s.time)});
  }
  return t;
}

// A text that lists the kernels whose class is not known, longest total time first. Of those beyond the first `top` it
// gives only the number.
std::string unknown_kernels(const TraceSummary& s, std::size_t top) {
  std::string text;
  std::size_t shown = 0, names = 0;
  for (const KernelTotal& k : s.by_kernel) {
    if (k.kernel_class != KernelClass::other) continue;
    ++names;
    if (shown == top) continue;
    ++shown;
    text += fmt::format("  {}: {} of them, {}\n", k.name, counted(k.total.count), time_text(seconds_of(k.total.time)));
  }
  if (names > shown) text += fmt::format("  and {} more\n", names - shown);
  return text;
}

}  // namespace

std::string summary_text(const TraceSummary& s, std::size_t top, const Style& style) {
  std::string text = summary_head(s);
  const auto add_table = [&](const Table& t) {
    if (!t.rows.empty()) text += '\n' + print(t, "", style.columns);
  };
  const std::vector<RankTotal> ranks = shown_ranks(s.ranks);
  if (ranks.size() < s.ranks.size())
    text += fmt::format("  {} ranks; a row has the means of neighbours, and their largest peaks of memory\n",
                        counted(static_cast<std::int64_t>(s.ranks.size())));
  add_table(rank_table(ranks));
  add_table(memory_table(ranks));
  add_table(class_table(s));
  add_table(kernel_table(s, top));
  add_table(operator_table(s, top));
  const std::string unknown = unknown_kernels(s, top);
  if (!unknown.empty()) text += '\n' + heading("kernels of no known class", style) + '\n' + unknown;
  return text;
}

}  // namespace orrery
