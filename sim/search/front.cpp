#include "sim/search/front.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/print/table.h"

namespace orrery {
namespace {

double price_of(const FrontRow& r) { return r.usd_per_Mtoken.value_or(std::numeric_limits<double>::infinity()); }

bool no_worse(const FrontRow& a, const FrontRow& b) {
  return a.tokens_per_s >= b.tokens_per_s && price_of(a) <= price_of(b) && a.memory <= b.memory;
}

}  // namespace

std::vector<FrontRow> front_of(std::vector<FrontRow> rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const FrontRow& a, const FrontRow& b) { return a.tokens_per_s > b.tokens_per_s; });
  std::vector<FrontRow> front;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    bool beaten = false;
    for (std::size_t j = 0; j < rows.size(); ++j)
      beaten = beaten || (no_worse(rows[j], rows[i]) && (j < i || !no_worse(rows[i], rows[j])));
    if (!beaten) front.push_back(rows[i]);
  }
  return front;
}

std::string front_text(const std::vector<FrontRow>& rows, bool cut, const Style& style) {
  const bool one = std::all_of(rows.begin(), rows.end(), [&](const FrontRow& r) {
    return r.machine == rows.front().machine && r.gpus == rows.front().gpus;
  });
  const std::string end =
      fmt::format("  each row needs at least {:.0f} % less memory than the one before{}\n", 100 * (1 - kFrontStep),
                  cut ? "; cut here: less may do" : "; less than the last does not do");
  std::string text =
      one ? "\n  time against memory\n" : "\n  time, cost and memory: to each of these none is better in all\n";
  if (one) {
    for (const FrontRow& r : rows)
      text += fmt::format("  {:>9}  {:>9}  {}\n", time_text(r.step_s), memory_text(static_cast<double>(r.memory)),
                          r.strategy);
    return text + end;
  }
  Table t{{{"machine", "", Align::left},
           {"GPUs"},
           {"tokens/s", ""},
           {"rent", "$/Mtoken"},
           {"memory", ""},
           {"strategy", "", Align::left}},
          {}};
  for (const FrontRow& r : rows)
    t.rows.push_back({r.machine, grouped(static_cast<double>(r.gpus)), grouped(r.tokens_per_s),
                      r.usd_per_Mtoken ? fmt::format("{:.3f}", *r.usd_per_Mtoken) : "-",
                      memory_text(static_cast<double>(r.memory)), r.strategy});
  return text + print(t, "  ", style.columns) + (cut ? "  cut: less memory may do on some machine\n" : "");
}

std::string front_json(const std::vector<FrontRow>& rows) {
  using nlohmann::ordered_json;
  ordered_json list = ordered_json::array();
  for (const FrontRow& r : rows)
    list.push_back({{"machine", r.machine},
                    {"gpus", r.gpus},
                    {"name", r.strategy},
                    {"overrides", r.overrides},
                    {"step_time_s", r.step_s},
                    {"tokens_per_s", r.tokens_per_s},
                    {"usd_per_Mtoken", r.usd_per_Mtoken ? ordered_json(*r.usd_per_Mtoken) : ordered_json(nullptr)},
                    {"peak_device_bytes", r.memory}});
  return list.dump(2) + '\n';
}

}  // namespace orrery
