#include "sim/report/report_text.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/spec/sharding.h"
#include "models/spec/vision.h"
#include "sim/print/table.h"

namespace orrery {
namespace {

constexpr std::string_view kIndent = "  ";
constexpr std::size_t kBarColumns = 40;
constexpr std::size_t kAliveShown = 3;

double as_double(Bytes bytes) { return static_cast<double>(bytes); }

std::string batch_text(const Spec& spec) {
  const Strategy& s = spec.strategy;
  return fmt::format("{} micro-batch{} of {} x {} tokens a replica, {} sequences a step", s.micro_batches(),
                     s.micro_batches() == 1 ? "" : "es", s.micro_batch, spec.sequence, s.global_batch);
}

std::string strategy_text(const Spec& spec) {
  const Strategy& s = spec.strategy;
  std::vector<std::string> parts;
  const auto degree = [&](std::string_view name, std::int64_t n) {
    if (n > 1) parts.push_back(fmt::format("{} {}", name, n));
  };
  degree(s.on_grid() ? s.tensor_kind + " tensor" : "tensor", s.tensor);
  degree("pipeline", s.pipeline);
  if (s.places() > s.pipeline) parts.push_back(fmt::format("stages of {} ranks", fmt::join(s.stage_replicas, ", ")));
  degree("context", s.context);
  degree("expert", s.expert);
  if (spec.model.moe) degree("expert-tensor", s.expert_tensor);
  degree("data", s.data);
  if (s.pipeline > 1) parts.push_back(s.schedule);
  degree("virtual stages", s.virtual_stages);
  if (s.data * s.context > 1) parts.push_back(fmt::format("sharding {}", name_of(s.sharding)));
  parts.emplace_back(name_of(s.precision));
  parts.push_back(spec.software.name);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string fit_text(const Report& r, const Style& style) {
  const double room = as_double(r.memory.capacity - r.memory.peak_device);
  const std::string capacity = memory_text(as_double(r.memory.capacity));
  const auto over = [&](std::string_view what, Bytes peak, Bytes limit) {
    return warning(fmt::format("DOES NOT FIT: {} of {} on a node, which has {}", memory_text(as_double(peak)), what,
                               memory_text(as_double(limit))),
                   style);
  };
  for (const MemoryTier tier : kTiersBeyond) {
    const std::size_t t = index_of(tier);
    if (is_over(r.memory, tier)) return over(row_of(tier).label, r.memory.tier_peak[t], r.memory.tier_capacity[t]);
  }
  if (r.memory.fits) return fmt::format("fits: {} to spare of {} per GPU", memory_text(room), capacity);
  if (room < 0)
    return warning(fmt::format("DOES NOT FIT: {} more than the {} of a GPU", memory_text(-room), capacity), style);
  for (const RankMemory& rank : r.memory.ranks) {
    const SlotMemory& m = rank.memory;
    if (!m.out_of_memory || m.refused > m.free_then) continue;
    return warning(fmt::format("DOES NOT FIT: fragmented: no {} in one piece, of {} that are free",
                               memory_text(as_double(m.refused)), memory_text(as_double(m.free_then))),
                   style);
  }
  return warning(fmt::format("DOES NOT FIT: the allocator finds no room in {} per GPU", capacity), style);
}

// Adds rows for the peak bytes that the ranks of one node have allocated on the host and on disks.
void add_beyond(Table& t, const Report& r) {
  for (const MemoryTier tier : kTiersBeyond) {
    const Bytes peak = r.memory.tier_peak[index_of(tier)], capacity = r.memory.tier_capacity[index_of(tier)];
    if (peak == 0) continue;
    t.rows.push_back({std::string(row_of(tier).label), memory_text(as_double(peak)),
                      capacity > 0 ? fmt::format("per node, of {}", memory_text(as_double(capacity))) : "per node"});
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
  t.rows.push_back({"memory", memory_text(as_double(r.memory.peak_device)), fit_text(r, style)});
  if (r.source == "simulated") add_beyond(t, r);
  return print(t, kIndent, style.columns);
}

// Returns the width of the longest bar in characters; figures and names take some forty columns of the terminal.
std::size_t bar_columns(const Style& style) {
  return style.columns == 0
             ? kBarColumns
             : std::clamp<std::size_t>(style.columns - std::min(style.columns, kBarColumns), 8, kBarColumns);
}

std::string time_table(const Report& r, const Style& style) {
  Table t;
  const Scale scale = time_scale(r.step_time_s);
  t.columns = {{"where the time goes", "", Align::left}, {"time", std::string(scale.unit)}, {"share", "%"}};
  if (style.bars) t.columns.push_back({"", "", Align::left});
  for (int k = 0; k < kTimeKinds; ++k) {
    const double share = r.step_time_s > 0 ? r.time_s[k] / r.step_time_s : 0;
    if (share < 0.0005) continue;  // leaves out a share that would print as 0.0 %
    std::string name(name_of(static_cast<TimeKind>(k)));
    std::replace(name.begin(), name.end(), '_', ' ');
    t.rows.push_back({name, number(r.time_s[k], scale), fmt::format("{:.1f}", 100 * share)});
    if (style.bars) t.rows.back().push_back(bar(share, bar_columns(style)));
  }
  return print(t, kIndent, style.columns);
}

std::string memory_table(const Report& r, const Style& style) {
  Table t;
  const Scale scale = memory_scale(as_double(r.memory.peak_device));
  const std::string unit(scale.unit);
  t.columns = {
      {"memory per rank", "", Align::left}, {"ranks"}, {"device", unit}, {"reserved", unit}, {"allocated", unit}};
  std::vector<std::size_t> shown;  // categories of memory of which some rank has enough bytes to print
  for (std::size_t c = 0; c < kCategories; ++c) {
    const auto prints = [&](const RankMemory& rank) { return as_double(rank.memory.at_peak[c]) >= 0.005 * scale.size; };
    if (std::none_of(r.memory.ranks.begin(), r.memory.ranks.end(), prints)) continue;
    shown.push_back(c);
    t.columns.push_back({std::string(name_of(static_cast<Category>(c))), unit});
  }
  for (const RankMemory& rank : r.memory.ranks) {
    std::vector<std::string> row = {rank.name, fmt::format("{}", rank.ranks)};
    for (const Bytes b : {rank.device_peak, rank.memory.peak_reserved, rank.memory.peak}) {
      row.push_back(number(as_double(b), scale));
    }
    for (const std::size_t c : shown) row.push_back(number(as_double(rank.memory.at_peak[c]), scale));
    t.rows.push_back(row);
  }
  return print(t, kIndent, style.columns);
}

// Returns a line that says when the fullest class of ranks has its peak, and that names the largest buffers at that
// moment.
std::string peak_text(const Report& r) {
  const auto worst =
      std::max_element(r.memory.ranks.begin(), r.memory.ranks.end(),
                       [](const RankMemory& a, const RankMemory& b) { return a.device_peak < b.device_peak; });
  if (worst == r.memory.ranks.end()) return "";
  std::string text = fmt::format("{}{} peaks at {}\n", kIndent, worst->name, worst->at);
  const std::vector<std::string>& alive = worst->memory.alive;
  const auto last = alive.begin() + static_cast<std::ptrdiff_t>(std::min(alive.size(), kAliveShown));
  if (!alive.empty()) text += fmt::format("{}alive then: {}\n", kIndent, fmt::join(alive.begin(), last, ", "));
  if (r.memory.first_step_peak > 0 && r.memory.first_step_peak < r.memory.peak)
    text +=
        fmt::format("{}the first step peaks at {} allocated; from the second on, with what appears at its end, {}\n",
                    kIndent, memory_text(as_double(r.memory.first_step_peak)), memory_text(as_double(r.memory.peak)));
  if (r.memory.device_calls > 0)
    text += fmt::format(
        "{}full: a step gives cached segments back and takes them again, {} calls, {}; expandable segments or less "
        "memory would spare that\n",
        kIndent, r.memory.device_calls, time_text(r.memory.remapping_s));
  return text;
}

std::string communication_table(const Report& r, const Style& style) {
  Table t;
  t.columns = {{"communication", "", Align::left},
               {"op", "", Align::left},
               {"link", "", Align::left},
               {"algorithm", "", Align::left},
               {"count"},
               {"per GPU"},
               {"time"},
               {"exposed"}};
  for (const CommunicationRow& row : r.communication) {
    t.rows.push_back({row.group, row.op, row.link, row.algorithm, fmt::format("{}", row.count),
                      volume_text(row.bytes_per_gpu), time_text(row.time_s),
                      row.exposed_s > 0 ? time_text(row.exposed_s) : "-"});
  }
  const bool beyond = std::any_of(r.communication.begin(), r.communication.end(),
                                  [](const CommunicationRow& row) { return row.exposed_s > row.time_s; });
  std::string text = print(t, kIndent, style.columns);
  if (beyond)
    text +=
        fmt::format("{}exposed: what all ranks idle for a transfer, on average; several may wait for one\n", kIndent);
  return text;
}

std::string weights_table(const Report& r, const Style& style) {
  Table t;
  t.columns = {{"weights", "", Align::left}, {"versions"}, {"staleness", "updates"}};
  for (const WeightRow& w : r.weights)
    t.rows.push_back({w.name, fmt::format("{}", w.versions), fmt::format("{}", w.staleness)});
  return print(t, kIndent, style.columns);
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
  const auto over = [](Bytes peak, Bytes limit) {
    return fmt::format("{} over", memory_text(as_double(peak - limit)));
  };
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
  text += fmt::format("{}{}\n{}{}\n", kIndent, strategy_text(spec), kIndent, batch_text(spec));
  if (spec.cluster.gpu.uncalibrated) {
    text += warning(
        fmt::format("{}UNCALIBRATED: no model of {}'s communication was validated\n", kIndent, spec.cluster.gpu.name),
        style);
  }
  return text;
}

std::string roll_back_text(const Report& r) {
  if (r.roll_back_s <= 0) return "";
  return fmt::format("{}setting an update right takes {} more of a step ({:.1f} %)\n", kIndent,
                     time_text(r.roll_back_s), 100 * r.roll_back_s / r.step_time_s);
}

std::string report_text(const Spec& spec, const Report& report, const Style& style) {
  std::string text = title(spec, style) + '\n' + headline(report, style) + '\n' + time_table(report, style) + '\n';
  text += memory_table(report, style) + peak_text(report) + '\n';
  if (!report.communication.empty()) text += communication_table(report, style) + '\n';
  if (!report.weights.empty()) text += weights_table(report, style) + '\n';
  if (!report.losses.empty()) text += loss_text(report) + '\n';
  text += roll_back_text(report);
  if (report.checkpoint) text += checkpoint_text(spec, *report.checkpoint, kIndent);
  for (const std::string& remark : report.remarks) text += fmt::format("{}{}\n", kIndent, remark);
  return text + fmt::format("{}limited by {}\n", kIndent, report.limit);
}

}  // namespace orrery
