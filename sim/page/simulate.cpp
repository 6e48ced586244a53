#include "sim/page/simulate.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/page/colours.h"
#include "sim/page/document.h"
#include "sim/page/html.h"
#include "sim/page/links.h"
#include "sim/page/memory_chart.h"
#include "sim/page/summary.h"
#include "sim/page/timeline.h"
#include "sim/page/words.h"
#include "sim/print/text.h"
#include "sim/report/link_load.h"
#include "sim/report/report_parts.h"

namespace orrery {
namespace {

std::string levers_markup(const StepAdvice& a, bool fits) {
  std::string text;
  if (!a.fitting.rows.empty()) text += element("h3", "The smallest changes that fit") + '\n' + table_markup(a.fitting);
  text += element("h3", "The biggest levers of the strategy") + '\n';
  text += a.strategy.empty()
              ? paragraph(fmt::format("None of {} single changes that were simulated makes the step faster{}.", a.tried,
                                      fits ? " and fits" : ""))
              : numbered(a.strategy);
  if (!a.machine.empty()) text += element("h3", "The biggest levers of the machine") + '\n' + numbered(a.machine);
  return text;
}

std::string summary_part(const Spec& spec, const Report& r, const StepAdvice& advice) {
  std::string content;
  if (!r.memory.fits) content += alarm_markup(fit_text(r));
  content += step_cards(r) + time_bar(r);
  content += paragraph(fmt::format("limited by {}", r.limit));
  if (const std::string models = models_text(r); !models.empty()) content += paragraph(models);
  for (const std::string& remark : r.remarks) content += paragraph("Note: " + remark);
  if (spec.cluster.gpu.uncalibrated)
    content +=
        alarm_markup(fmt::format("Uncalibrated: kernels and communication of {} are those of data sheets and single "
                                 "measurements, not fitted to steps.",
                                 spec.cluster.gpu.name));
  content += levers_markup(advice, r.memory.fits);
  content += element("h3", "How it is trained") + '\n' + lines_markup(strategy_words(spec));
  return part("Summary", content);
}

std::string attribution_part(const Prediction& p) {
  const Report& r = p.report;
  std::string content = time_markup(r);
  if (!r.communication.empty())
    content += element("h3", "Transfers of a step") + '\n' + table_markup(communication_table(r)) +
               paragraph(exposed_note(r), "class=\"note\"");
  if (const std::string links = links_markup(link_loads(p.plan, p.costs.timing, p.trace, p.cluster), p.trace.step_time);
      !links.empty())
    content += element("h3", "How full links are over the step") + '\n' + links;
  if (!r.weights.empty()) content += table_markup(weights_table(r));
  return part("Where the time goes", content, "class=\"sheet\"");
}

// The memory of the fullest rank at its peak, as a table: category, bytes and share; the largest buffers below.
std::string at_peak_markup(const RankMemory& worst) {
  const auto all = static_cast<double>(worst.memory.peak);
  const Scale scale = memory_scale(all);
  Table t{{{"at the peak of " + worst.name, "", Align::left}, {"memory", std::string(scale.unit)}, {"share", "%"}}, {}};
  std::vector<std::string> swatches;
  const auto add = [&](std::string_view name, Bytes bytes, std::string_view colour) {
    if (bytes <= 0) return;
    t.rows.push_back(
        {std::string(name), number(static_cast<double>(bytes), scale),
         fmt::format("{:.1f}", 100 * static_cast<double>(bytes) / static_cast<double>(worst.device_peak))});
    swatches.emplace_back(colour);
  };
  for (int c = 0; c < kCategories; ++c)
    add(name_of(static_cast<Category>(c)), worst.memory.at_peak[c], colour_of(static_cast<Category>(c)));
  add("cached by the allocator", worst.memory.peak_reserved - worst.memory.peak, "#bbbbbb");
  add("CUDA context and NCCL", worst.device_peak - worst.memory.peak_reserved, "#777777");
  t.rows.push_back({"taken of the GPU", number(static_cast<double>(worst.device_peak), scale), "100.0"});
  std::string text = table_markup(t, swatches);
  if (!worst.memory.alive.empty())
    text += element("h3", "The largest buffers then") + '\n' + numbered(worst.memory.alive);
  return text;
}

std::string memory_part(const Spec& spec, const Prediction& p) {
  const MemoryReport& m = p.report.memory;
  const RankMemory* worst = fullest_rank(m);
  if (worst == nullptr) return "";
  const auto slot = static_cast<std::uint32_t>(worst - m.ranks.data());
  Spec one_step = spec;
  one_step.steps = 1;
  const std::vector<MemorySample> all = memory_samples(one_step, p.plan, p.costs, p.trace, p.profile);
  std::vector<MemorySample> samples;
  std::copy_if(all.begin(), all.end(), std::back_inserter(samples),
               [&](const MemorySample& s) { return s.slot == slot; });
  std::string content = paragraph(fmt::format("The tightest of {} classes of ranks is {}, of which there are {}: {}.",
                                              m.ranks.size(), worst->name, worst->ranks, fit_text(p.report)));
  content += memory_chart({samples, p.trace.step_time, m.capacity, worst->device_peak});
  std::vector<std::string> lines = peak_lines(p.report);
  std::erase_if(lines,
                // leaves out the line "alive then ..." on the largest buffers, all of which the page lists
                [](const std::string& line) { return line.starts_with("alive then"); });
  content += at_peak_markup(*worst) + lines_markup(lines);
  content += element("h3", "All classes of ranks") + '\n' + table_markup(memory_table(p.report));
  for (const MemoryTier tier : kTiersBeyond) {
    if (m.tier_peak[index_of(tier)] > 0)
      content += paragraph(fmt::format("{} of a node: at most {}", row_of(tier).label,
                                       memory_text(static_cast<double>(m.tier_peak[index_of(tier)]))));
  }
  return part("Memory", content, "class=\"sheet\"");
}

std::vector<std::string> under_title(const Spec& spec) {
  return {fmt::format("{} parameters; {}", count_text(static_cast<double>(parameter_count(spec.model, spec.sequence))),
                      strategy_text(spec)),
          batch_text(spec)};
}

}  // namespace

std::string simulate_page(const Spec& spec, const Prediction& p, const StepAdvice& advice, const SpecNotes& notes) {
  std::string body = summary_part(spec, p.report, advice) + attribution_part(p);
  body += part("Timeline", timeline_markup(p.plan, p.trace));
  body +=
      memory_part(spec, p) + machine_part(spec, advice.prices) + defaults_part(spec, notes) + spec_part(spec, notes);
  return document({title_words(spec), under_title(spec), notes.command, notes.version, body});
}

}  // namespace orrery
