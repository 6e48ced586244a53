#include "sim/page/validate.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "sim/page/document.h"
#include "sim/page/html.h"

namespace orrery {
namespace {

constexpr std::string_view kDashes = "The line is where prediction and measurement agree, the dashes are 10 % off.";

// The index of a name in a list, to which it is added if it is new.
std::size_t index_in(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  names.push_back(name);
  return names.size() - 1;
}

Scatter predicted_over_measured(const std::string& unit) {
  Scatter s{.x_name = "measured, " + unit, .y_name = "predicted, " + unit};
  s.logarithmic = s.equal = true;
  return s;
}

}  // namespace

std::string validate_page(const ValidatePage& page) {
  std::string body;
  for (const PagePlot& plot : page.plots) {
    const std::string chart = scatter_markup(plot.scatter, plot.caption);
    if (!chart.empty()) body += part(plot.title, chart);
  }
  for (const Section& section : page.sections) body += section_markup(section);
  return document({page.title, page.under, page.command, page.version, body});
}

std::vector<PagePlot> published_plots(const std::vector<PublishedCase>& cases) {
  PagePlot step{"Step time", predicted_over_measured("s"), std::string(kDashes)};
  PagePlot memory{"Peak memory", predicted_over_measured("GiB"), std::string(kDashes)};
  for (const PublishedCase& c : cases) {
    if (!c.reason.empty() || !c.row.doubtful.empty()) continue;
    if (c.row.step_time_s)
      step.scatter.points.push_back(
          {*c.row.step_time_s, c.step_time_s, index_in(step.scatter.series, c.row.source), c.row.id});
    if (c.row.peak_memory_bytes)
      memory.scatter.points.push_back({*c.row.peak_memory_bytes / kGiB, c.peak_memory_bytes / kGiB,
                                       index_in(memory.scatter.series, c.row.source), c.row.id});
  }
  return {step, memory};
}

std::vector<PagePlot> served_plots(const std::vector<ServedCase>& cases) {
  std::map<std::string_view, PagePlot> plots;
  for (const ServedCase& c : cases) {
    const std::string stack = c.row->framework.substr(0, c.row->framework.find(' '));
    for (const ServedCase::Figure& f : c.figures) {
      PagePlot& plot =
          plots
              .try_emplace(f.name, PagePlot{std::string(f.name), predicted_over_measured(std::string(f.name)),
                                            std::string(kDashes)})
              .first->second;
      plot.scatter.points.push_back({f.measured, f.predicted, index_in(plot.scatter.series, stack), c.row->id});
    }
  }
  std::vector<PagePlot> list;
  for (auto& [name, plot] : plots) list.push_back(std::move(plot));
  return list;
}

}  // namespace orrery
