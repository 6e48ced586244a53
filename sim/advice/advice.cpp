#include "sim/advice/advice.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "sim/predict/long_steps.h"
#include "sim/predict/predict.h"
#include "sim/report/critical_path.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

// The factor by which a rate of the machine is raised to find how much faster the step gets. A smaller factor might
// change nothing, because NCCL's model knows bandwidths only in steps of some percent.
constexpr double kMore = 1.1;

// A rate of the machine or its host (bandwidth, FLOP/s, ...), and how to change it in a spec.
struct Rate {
  const char* what;
  void (*raise)(Spec& spec, double factor);
  // whether the rate changes only in whole steps, as the number of NVLink links does, so that a rise of 10 % means
  // nothing
  bool steps = false;
};
constexpr Rate kRates[] = {{"twice the NIC speed", [](Spec& s, double f) { s.cluster.nic_Gbps *= f; }},
                           {"twice the NVLink speed",
                            [](Spec& s, double f) {
                              s.cluster.gpu.nvlink_GBps *= f;
                              s.cluster.gpu.link_GBps *= f;
                              s.cluster.gpu.nvlink_links = static_cast<int>(s.cluster.gpu.nvlink_links * f);
                            },
                            true},
                           {"twice the memory bandwidth", [](Spec& s, double f) { s.cluster.gpu.memory_GBps *= f; }},
                           {"twice the matrix rate",
                            [](Spec& s, double f) {
                              for (auto& [kind, rate] : s.cluster.gpu.tflops) rate *= f;
                            }},
                           {"half the host's time", [](Spec& s, double f) {
                              Software::Host& h = s.software.host;
                              for (double* us : {&h.launch_us, &h.call_us, &h.collective_launch_us, &h.layer_us,
                                                 &h.far_stage_layer_us, &h.micro_batch_us, &h.step_us, &h.rank_us})
                                *us /= f;
                            }}};

bool has(const Spec& spec, const Rate& rate) {
  const Cluster& c = spec.cluster;
  if (&rate == &kRates[0]) return c.nics > 0 && spec.gpus > c.gpus_per_node;
  return &rate != &kRates[1] || (c.nvlink_domain > 1 && spec.gpus > 1);
}

// The length in picoseconds of the critical path, that is, of the tasks in `path` and of their waits for the host, if
// the tasks took the times of `timing` instead of the simulated ones.
double length(const Prediction& p, const std::vector<TaskId>& path, const Timing& timing) {
  double sum = 0;
  Picoseconds before = 0;
  for (const TaskId t : path) {
    const std::uint32_t slot = p.plan.slot_of(t), op = p.plan.tasks[t].op;
    sum += static_cast<double>(timing.of(slot, op).duration);
    const auto late = static_cast<double>(std::max<Picoseconds>(p.trace.spans[t].entered - before, 0));
    const auto issue = static_cast<double>(p.costs.timing.of(slot, op).issue);
    // A task's wait for the host is assumed to get longer or shorter in the same ratio as the host's time for the
    // task's op, since the host's times for the ops issued before it change in that ratio too.
    if (late > 0 && issue > 0) sum += late * static_cast<double>(timing.of(slot, op).issue) / issue;
    before = p.trace.spans[t].ended;
  }
  return sum;
}

std::optional<double> slope(const Prediction& p, const std::vector<TaskId>& path, const Spec& spec, const Rate& rate) {
  if (rate.steps) return std::nullopt;
  Spec other = spec;
  rate.raise(other, kMore);
  const double saved = length(p, path, p.costs.timing) - length(p, path, costs_of(p.plan, other, p.profile).timing);
  return saved / kPicosecondsPerSecond / p.report.step_time_s;
}

void sort_by_gain(std::vector<Sensitivity>& list) {
  std::stable_sort(list.begin(), list.end(),
                   [](const Sensitivity& a, const Sensitivity& b) { return a.faster > b.faster; });
}

// The changes that may make the best strategy of a search faster, among them a strategy that needs GPUs with more
// memory.
std::vector<Sensitivity> sensitivities_of(const Spec& spec, const Profile& profile, const SearchResult& r,
                                          const Space& space) {
  std::vector<Sensitivity> result = sensitivities(spec, profile);
  const Report& best = r.best.front().report;
  if (r.roomier && r.roomier->report.step_time_s < best.step_time_s) {
    const MemoryReport& m = r.roomier->report.memory;
    result.push_back({fmt::format("{} of memory a GPU: {}", memory_text(static_cast<double>(m.peak_device)),
                                  space.text_of(r.roomier->point)),
                      1 - r.roomier->report.step_time_s / best.step_time_s, true, std::nullopt});
  }
  sort_by_gain(result);
  return result;
}

ordered_json json_of(const std::vector<Effect>& effects) {
  ordered_json list = ordered_json::array();
  for (const Effect& e : effects) {
    ordered_json row = {{"name", e.technique.name}, {"instead", e.technique.instead}, {"text", text_of(e)}};
    if (e.refused.empty())
      row.update({{"step_time_s", e.step_s}, {"slower", e.slower}, {"more_bytes", e.more}, {"fits", e.fits}});
    else
      row["refused"] = e.refused;
    list.push_back(std::move(row));
  }
  return list;
}

}  // namespace

std::vector<Sensitivity> sensitivities(const Spec& spec, const Profile& profile) {
  const Prediction p = predict(spec, profile);
  const std::vector<TaskId> path = critical_path(p.plan, p.trace);
  std::vector<Sensitivity> result;
  const auto add = [&](const char* what, const Spec& other, std::optional<double> along) {
    try {
      check(other);
      const Report report = predict_report(other, profile);
      result.push_back({what, 1 - p.report.tokens_per_s / report.tokens_per_s, report.memory.fits, along});
    } catch (const Error&) {  // the spec's rules forbid the changed spec, so the change is left out
    }
  };
  for (const auto& rate : kRates) {
    if (!has(spec, rate)) continue;
    Spec other = spec;
    rate.raise(other, 2);
    add(rate.what, other, slope(p, path, spec, rate));
  }
  Spec larger = spec;
  larger.strategy.global_batch *= 2;
  add("twice the batch", larger, std::nullopt);
  sort_by_gain(result);
  return result;
}

std::string text_of(const Sensitivity& s) {
  std::string text = fmt::format("{:.1f} %  {}", 100 * s.faster, s.what);
  if (s.slope) text += fmt::format(" ({:.1f} % for the first 10 %)", 100 * std::max(0.0, *s.slope));
  return text + (s.fits ? "" : ", which does not fit");
}

std::string lever_text(const Sensitivity& s) {
  std::string text = fmt::format("{}: {:.1f} % less time a token", s.what, 100 * s.faster);
  if (s.slope) text += fmt::format(" (10 % faster: {:.1f} %)", 100 * std::max(0.0, *s.slope));
  return text + (s.fits ? "" : ", but does not fit");
}

Advice advice(const Space& space, const Profile& profile, const SearchResult& r, unsigned threads) {
  const Spec spec = space.spec_of(r.best.front().point);
  const Report& report = r.best.front().report;
  std::vector<Technique> used = techniques(spec);
  used.erase(std::remove_if(used.begin(), used.end(), [](const Technique& t) { return !t.used; }), used.end());
  return {sensitivities_of(spec, profile, r, space), effects(profile, report, std::move(used), threads),
          effects(profile, report, situations(spec), threads)};
}

std::vector<Section> advice_sections(const Advice& a) {
  std::vector<Section> sections(3);
  sections[0].title = "what would make the best faster";
  for (const Sensitivity& s : a.helps) sections[0].lines.push_back(text_of(s));
  const auto add = [&](Section& section, const char* title, const std::vector<Effect>& list, bool names) {
    section.title = title;
    for (const Effect& e : list) {
      if (e.refused.empty())
        section.lines.push_back(names ? fmt::format("{}; {}", e.technique.name, text_of(e)) : text_of(e));
    }
  };
  add(sections[1], "what each part of it is worth", a.parts, true);
  add(sections[2], "in other situations, beside the best", a.situations, false);
  return sections;
}

std::string advice_text(const Advice& a, const Style& style) {
  std::string text;
  const std::vector<Section> sections = advice_sections(a);
  for (std::size_t i = 0; i < sections.size(); ++i) {
    constexpr std::size_t kPercent = 7;  // width in characters of the longest share, "100.0 %"
    if (!sections[i].lines.empty()) text += fmt::format("\n{}\n", heading("  " + sections[i].title, style));
    for (const std::string& line : sections[i].lines)
      text += fmt::format("  {:>{}}{}\n", i == 0 ? line.substr(0, line.find('%') + 1) : "", i == 0 ? kPercent : 2,
                          i == 0 ? line.substr(line.find('%') + 1) : line);
  }
  return text;
}

std::string advice_json(const Advice& a) {
  ordered_json j = {{"sensitivities", ordered_json::array()},
                    {"techniques", json_of(a.parts)},
                    {"situations", json_of(a.situations)}};
  for (const Sensitivity& s : a.helps)
    j["sensitivities"].push_back({{"what", s.what},
                                  {"faster", s.faster},
                                  {"fits", s.fits},
                                  {"for_10_percent", s.slope ? ordered_json(*s.slope) : ordered_json(nullptr)}});
  return j.dump(2) + '\n';
}

}  // namespace orrery
