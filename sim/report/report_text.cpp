#include "sim/report/report_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "models/spec/vision.h"
#include "sim/print/table.h"
#include "sim/report/report_parts.h"

namespace orrery {
namespace {

constexpr std::string_view kIndent = "  ";
constexpr std::size_t kBarColumns = 40;

double bytes_of(Bytes bytes) { return static_cast<double>(bytes); }

// Adds rows for the peak bytes that the ranks of one node have allocated on the host and on disks.
void add_beyond(Table& t, const Report& r) {
  for (const MemoryTier tier : kTiersBeyond) {
    const Bytes peak = r.memory.tier_peak[index_of(tier)], capacity = r.memory.tier_capacity[index_of(tier)];
    if (peak == 0) continue;
    t.rows.push_back({std::string(row_of(tier).label), memory_text(bytes_of(peak)),
                      capacity > 0 ? fmt::format("per node, of {}", memory_text(bytes_of(capacity))) : "per node"});
  }
}

// MFU is printed twice, counting attention over the pairs within the mask and over all s x s pairs, if the two figures
// differ by more than this fraction.
constexpr double kConventionsDiffer = 0.02;

std::string headline(const Report& r, const Style& style) {
  Table t;
  t.columns = {{"", "", Align::left}, {}, {"", "", Align::left}};
  const Scale step = time_scale(r.step_time_s);
  t.rows.push_back({"step time", with_unit(r.step_time_s, step),
                    r.step_time_low_s < r.step_time_high_s
                        ? fmt::format("{} to {}", number(r.step_time_low_s, step), with_unit(r.step_time_high_s, step))
                        : ""});
  t.rows.push_back({"tokens/s", grouped(r.tokens_per_s), grouped(r.tokens_per_s_per_gpu) + " per GPU"});
  if (r.mfu > 0) {
    t.rows.push_back({"MFU", percent_text(r.mfu),
                      fmt::format("{:.0f} TFLOP/s per GPU; with recomputation {} and {:.0f}", r.model_tflops_per_gpu,
                                  percent_text(r.hfu), r.hardware_tflops_per_gpu)});
    if (r.mfu_full_attention - r.mfu > kConventionsDiffer)
      t.rows.push_back({"", percent_text(r.mfu_full_attention),
                        fmt::format("{:.0f} TFLOP/s, attention counted over s x s as papers do; above over its mask",
                                    r.model_tflops_full_attention)});
  }
  const std::string fit = fit_text(r);
  t.rows.push_back({"memory", memory_text(bytes_of(r.memory.peak_device)), r.memory.fits ? fit : warning(fit, style)});
  if (r.source == "simulated") add_beyond(t, r);
  return print(t, kIndent, style.columns);
}

// Returns the width of the longest bar in characters; figures and names take some forty columns of the terminal.
std::size_t bar_columns(const Style& style) {
  return style.columns == 0
             ? kBarColumns
             : std::clamp<std::size_t>(style.columns - std::min(style.columns, kBarColumns), 8, kBarColumns);
}

std::string peak_text(const Report& r) {
  std::string text;
  for (const std::string& line : peak_lines(r)) text += fmt::format("{}{}\n", kIndent, line);
  return text;
}

std::string communication_text(const Report& r, const Style& style) {
  const std::string note = exposed_note(r);
  return print(communication_table(r), kIndent, style.columns) +
         (note.empty() ? "" : fmt::format("{}{}\n", kIndent, note));
}

std::string loss_text(const Report& r) {
  Table t;
  t.columns = {{"step"}, {"loss"}};
  for (std::size_t i = 0; i < r.losses.size(); ++i)
    t.rows.push_back({fmt::format("{}", i + 1), fmt::format("{:.6f}", r.losses[i])});
  return print(t, kIndent);
}

}  // namespace

std::string lack_text(const MemoryReport& m) {
  const auto over = [](Bytes peak, Bytes limit) { return fmt::format("{} over", memory_text(bytes_of(peak - limit))); };
  for (const MemoryTier tier : kTiersBeyond) {
    const std::size_t t = index_of(tier);
    if (is_over(m, tier)) return fmt::format("{} {}", row_of(tier).label, over(m.tier_peak[t], m.tier_capacity[t]));
  }
  if (m.peak_device > m.capacity) return over(m.peak_device, m.capacity);
  for (const RankMemory& rank : m.ranks) {
    if (rank.memory.out_of_memory && rank.memory.refused <= rank.memory.free_then) return "fragmented";
  }
  return "no room for a buffer";
}

double exposed_share(const Report& report) {
  double sum = 0;
  for (auto k = static_cast<int>(TimeKind::exposed_tensor); k <= static_cast<int>(TimeKind::exposed_data); ++k) {
    sum += report.time_s[k];
  }
  return report.step_time_s > 0 ? sum / report.step_time_s : 0;
}

std::string title(const Spec& spec, const Style& style) {
  const auto parameters = static_cast<double>(parameter_count(spec.model, spec.sequence));
  std::string text = fmt::format("{}: {} parameters on {} x {}", heading(spec.model.name, style),
                                 count_text(parameters), spec.gpus, spec.cluster.gpu.name);
  text += spec.cluster.node_id.empty() ? "\n" : fmt::format(" ({})\n", spec.cluster.node_id);
  if (spec.images)
    text += fmt::format("{}and a vision encoder of {}: {} x {} patches a sample are {} of its tokens\n", kIndent,
                        count_text(static_cast<double>(vision_parameter_count(spec.model))), spec.images->count,
                        spec.images->patches, image_tokens(spec));
  if (spec.second)
    text += fmt::format(
        "{}beside a frozen {}: {} of {} parameters{}\n", kIndent, name_of(spec.second->role), spec.second->model.name,
        count_text(static_cast<double>(parameter_count(spec.second->model, spec.sequence))), second_layout_text(spec));
  text += fmt::format("{}{}\n{}{}\n", kIndent, strategy_text(spec), kIndent, batch_text(spec));
  if (spec.cluster.gpu.uncalibrated) {
    text += warning(fmt::format("{}UNCALIBRATED: kernels and communication of {} are those of data sheets and single "
                                "measurements, not fitted to steps\n",
                                kIndent, spec.cluster.gpu.name),
                    style);
  }
  return text;
}

std::string roll_back_line(const Report& r) {
  if (r.roll_back_s <= 0) return "";
  return fmt::format("setting an update right takes {} more of a step ({:.1f} %)", time_text(r.roll_back_s),
                     100 * r.roll_back_s / r.step_time_s);
}

std::string variation_line(const Report& r) {
  const double from = r.step_time_s, p50 = r.variation->p50, p95 = r.variation->p95;
  return fmt::format(
      "GPUs differ: a step takes {} ({:+.1f} %) on half of all such clusters, at most {} ({:+.1f} %) on 95 %; the step "
      "above lets all GPUs be as slow as the job's slowest",
      time_text(p50), 100 * (p50 / from - 1), time_text(p95), 100 * (p95 / from - 1));
}

std::string hashes_line(const Report& r) {
  const double from = r.step_time_s, p50 = r.hashes->p50, p95 = r.hashes->p95;
  return fmt::format(
      "hashes choose uplinks: a step takes {} ({:+.1f} %) in half of all jobs, at most {} ({:+.1f} %) in 95 %; the "
      "step "
      "above has the mean of every transfer",
      time_text(p50), 100 * (p50 / from - 1), time_text(p95), 100 * (p95 / from - 1));
}

std::string report_text(const Spec& spec, const Report& report, const Style& style) {
  const std::size_t bars = style.bars ? bar_columns(style) : 0;
  std::string text = title(spec, style) + '\n' + headline(report, style) + '\n';
  text += print(time_table(report, bars), kIndent, style.columns) + '\n';
  text += print(memory_table(report), kIndent, style.columns) + peak_text(report) + '\n';
  if (!report.communication.empty()) text += communication_text(report, style) + '\n';
  // A step within a node has no links but NVLink, of which the table above tells enough.
  if (report.links.size() > 1) text += print(links_table(report), kIndent, style.columns) + '\n';
  if (!report.weights.empty()) text += print(weights_table(report), kIndent, style.columns) + '\n';
  if (!report.losses.empty()) text += loss_text(report) + '\n';
  if (report.roll_back_s > 0) text += fmt::format("{}{}\n", kIndent, roll_back_line(report));
  if (report.variation) text += fmt::format("{}{}\n", kIndent, variation_line(report));
  if (report.hashes) text += fmt::format("{}{}\n", kIndent, hashes_line(report));
  if (report.checkpoint) text += checkpoint_text(spec, *report.checkpoint, kIndent);
  for (const std::string& remark : report.remarks) text += fmt::format("{}{}\n", kIndent, remark);
  text += fmt::format("{}limited by {}\n", kIndent, report.limit);
  if (const std::string models = models_text(report); !models.empty()) text += fmt::format("{}{}\n", kIndent, models);
  return text;
}

}  // namespace orrery
