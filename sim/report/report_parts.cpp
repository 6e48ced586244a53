#include "sim/report/report_parts.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/partition/rank_groups.h"
#include "models/spec/sharding.h"
#include "sim/print/text.h"

namespace orrery {
namespace {

constexpr std::size_t kAliveShown = 3;

double as_double(Bytes bytes) { return static_cast<double>(bytes); }

}  // namespace

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
  if (has_experts(spec)) degree("expert-tensor", s.expert_tensor);
  degree("data", s.data);
  if (s.pipeline > 1) parts.push_back(s.schedule);
  degree("virtual stages", s.virtual_stages);
  if (s.data * s.context > 1) parts.push_back(fmt::format("sharding {}", name_of(s.sharding)));
  parts.emplace_back(name_of(s.precision));
  parts.push_back(spec.software.name);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string second_layout_text(const Spec& spec) {
  if (!has_second_apart(spec)) return "";
  const Strategy& s = *spec.second->strategy;
  std::string text = fmt::format(" on {} GPUs of its own", spec.second->gpus);
  const char* before = ": ";
  for (const auto& [name, n] : {std::pair("tensor", s.tensor),
                                {"pipeline", s.pipeline},
                                {"context", spec.strategy.context},
                                {"expert", s.expert},
                                {"data", s.data}}) {
    if (n == 1) continue;
    text += fmt::format("{}{} {}", std::exchange(before, ", "), name, n);
  }
  return text;
}

std::string fit_text(const Report& r) {
  const double room = as_double(r.memory.capacity - r.memory.peak_device);
  const std::string capacity = memory_text(as_double(r.memory.capacity));
  const auto over = [&](std::string_view what, Bytes peak, Bytes limit) {
    return fmt::format("DOES NOT FIT: {} of {} on a node, which has {}", memory_text(as_double(peak)), what,
                       memory_text(as_double(limit)));
  };
  for (const MemoryTier tier : kTiersBeyond) {
    const std::size_t t = index_of(tier);
    if (is_over(r.memory, tier)) return over(row_of(tier).label, r.memory.tier_peak[t], r.memory.tier_capacity[t]);
  }
  if (r.memory.fits) return fmt::format("fits: {} to spare of {} per GPU", memory_text(room), capacity);
  if (room < 0) return fmt::format("DOES NOT FIT: {} more than the {} of a GPU", memory_text(-room), capacity);
  for (const RankMemory& rank : r.memory.ranks) {
    const SlotMemory& m = rank.memory;
    if (!m.out_of_memory || m.refused > m.free_then) continue;
    return fmt::format("DOES NOT FIT: fragmented: no {} in one piece, of {} that are free",
                       memory_text(as_double(m.refused)), memory_text(as_double(m.free_then)));
  }
  return fmt::format("DOES NOT FIT: the allocator finds no room in {} per GPU", capacity);
}

std::string_view name_of(TimeKind k) {
  static constexpr std::array<std::string_view, kTimeKinds> names = {
      "compute",          "recompute",    "exposed_tensor", "exposed_context", "exposed_expert",
      "exposed_pipeline", "exposed_data", "offload",        "optimizer",       "bubble",
      "imbalance",        "launch",       "other"};
  return names[static_cast<std::size_t>(k)];
}

std::string_view trained_name(SecondModel::Role role) {
  return role == SecondModel::Role::teacher ? "student" : "policy";
}

std::string models_text(const Report& r) {
  std::vector<std::string> parts;
  for (const ModelTime& m : r.models) {
    const double share = std::accumulate(m.time_s.begin(), m.time_s.end(), 0.0) / r.step_time_s;
    parts.push_back(fmt::format("the {} {}{:.0f} %{} ({})", m.name, parts.empty() ? "takes " : "", 100 * share,
                                parts.empty() ? " of a step" : "", m.limit));
  }
  std::vector<std::string> idle;
  for (const ModelTime& m : r.models) {
    if (m.gpus > 0) idle.push_back(fmt::format("the {}'s {} GPUs {:.0f} %", m.name, m.gpus, 100 * m.idle_share));
  }
  if (!idle.empty()) parts.push_back(fmt::format("idle: {}", fmt::join(idle, ", ")));
  return fmt::format("{}", fmt::join(parts, ", "));
}

Table time_table(const Report& r, std::size_t bars) {
  Table t;
  const Scale scale = time_scale(r.step_time_s);
  t.columns = {{"where the time goes", "", Align::left}, {"time", std::string(scale.unit)}, {"share", "%"}};
  for (const ModelTime& m : r.models) t.columns.push_back({m.name, std::string(scale.unit)});
  if (bars > 0) t.columns.push_back({"", "", Align::left});
  for (int k = 0; k < kTimeKinds; ++k) {
    const double share = r.step_time_s > 0 ? r.time_s[k] / r.step_time_s : 0;
    if (share < 0.0005) continue;  // leaves out a share that would print as 0.0 %
    std::string name(name_of(static_cast<TimeKind>(k)));
    std::replace(name.begin(), name.end(), '_', ' ');
    t.rows.push_back({name, number(r.time_s[k], scale), fmt::format("{:.1f}", 100 * share)});
    for (const ModelTime& m : r.models) t.rows.back().push_back(number(m.time_s[k], scale));
    if (bars > 0) t.rows.back().push_back(bar(share, bars));
  }
  return t;
}

Table memory_table(const Report& r) {
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
  return t;
}

const RankMemory* fullest_rank(const MemoryReport& m) {
  const auto worst = std::max_element(m.ranks.begin(), m.ranks.end(), [](const RankMemory& a, const RankMemory& b) {
    return a.device_peak < b.device_peak;
  });
  return worst == m.ranks.end() ? nullptr : &*worst;
}

std::vector<std::string> peak_lines(const Report& r) {
  const RankMemory* worst = fullest_rank(r.memory);
  if (worst == nullptr) return {};
  std::vector<std::string> lines = {fmt::format("{} peaks at {}", worst->name, worst->at)};
  const std::vector<std::string>& alive = worst->memory.alive;
  const auto last = alive.begin() + static_cast<std::ptrdiff_t>(std::min(alive.size(), kAliveShown));
  if (!alive.empty()) lines.push_back(fmt::format("alive then: {}", fmt::join(alive.begin(), last, ", ")));
  if (r.memory.first_step_peak > 0 && r.memory.first_step_peak < r.memory.peak)
    lines.push_back(
        fmt::format("the first step peaks at {} allocated; from the second on, with what appears at its end, {}",
                    memory_text(as_double(r.memory.first_step_peak)), memory_text(as_double(r.memory.peak))));
  if (r.memory.device_calls > 0)
    lines.push_back(fmt::format(
        "full: a step gives cached segments back and takes them again, {} calls, {}; expandable segments or less "
        "memory would spare that",
        r.memory.device_calls, time_text(r.memory.remapping_s)));
  return lines;
}

Table communication_table(const Report& r) {
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
  return t;
}

Table links_table(const Report& r) {
  Table t;
  t.columns = {{"links by use", "", Align::left}, {"the fullest", "", Align::left}, {"of its rate", "%"}};
  for (const LinkUseRow& l : r.links) t.rows.push_back({l.link, l.of, fmt::format("{:.1f}", 100 * l.share)});
  return t;
}

std::string exposed_note(const Report& r) {
  const bool beyond = std::any_of(r.communication.begin(), r.communication.end(),
                                  [](const CommunicationRow& row) { return row.exposed_s > row.time_s; });
  return beyond ? "exposed: what all ranks idle for a transfer, on average; several may wait for one" : "";
}

Table weights_table(const Report& r) {
  Table t;
  t.columns = {{"weights", "", Align::left}, {"versions"}, {"staleness", "updates"}};
  for (const WeightRow& w : r.weights)
    t.rows.push_back({w.name, fmt::format("{}", w.versions), fmt::format("{}", w.staleness)});
  return t;
}

}  // namespace orrery
