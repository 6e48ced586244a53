#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/report/report.h"

namespace orrery {
namespace {

using json = nlohmann::ordered_json;

json memory_json(const Report& r) {
  json memory = {{"capacity_bytes", r.memory.capacity},
                 {"usable_bytes", r.memory.usable},
                 {"fits", r.memory.fits},
                 {"first_step_peak_bytes", r.memory.first_step_peak},
                 {"peak_bytes", r.memory.peak},
                 {"peak_reserved_bytes", r.memory.peak_reserved},
                 {"peak_device_bytes", r.memory.peak_device}};
  if (!r.memory.stalled.empty()) {
    MemoryReport stalled;
    for (const RankMemory& rank : r.memory.stalled) add_rank(stalled, rank);
    memory["stalled_peak_reserved_bytes"] = stalled.peak_reserved;
  }
  for (const MemoryTier tier : kTiersBeyond)
    memory[fmt::format("{}_peak_bytes", row_of(tier).name)] = r.memory.tier_peak[index_of(tier)];
  memory["device_calls"] = r.memory.device_calls;
  memory["remapping_s"] = r.memory.remapping_s;
  memory["ranks"] = json::array();
  for (const RankMemory& rank : r.memory.ranks) {
    json at_peak;
    for (int c = 0; c < kCategories; ++c)
      at_peak[std::string(name_of(static_cast<Category>(c)))] = rank.memory.at_peak[c];
    memory["ranks"].push_back({{"name", rank.name},
                               {"ranks", rank.ranks},
                               {"peak_bytes", rank.memory.peak},
                               {"peak_reserved_bytes", rank.memory.peak_reserved},
                               {"peak_device_bytes", rank.device_peak},
                               {"at", rank.at},
                               {"at_peak", at_peak},
                               {"refused_bytes", rank.memory.refused},
                               {"free_bytes", rank.memory.free_then},
                               {"alive", rank.memory.alive}});
  }
  return memory;
}

json time_json(const TimeSplit& split) {
  json time;
  for (int k = 0; k < kTimeKinds; ++k) time[std::string(name_of(static_cast<TimeKind>(k)))] = split[k];
  return time;
}

json models_json(const std::vector<ModelTime>& models) {
  json list = json::array();
  for (const ModelTime& m : models) {
    list.push_back({{"name", m.name}, {"time_s", time_json(m.time_s)}});
    if (m.gpus == 0) continue;
    list.back()["gpus"] = m.gpus;
    list.back()["idle_share"] = m.idle_share;
  }
  return list;
}

json communication_json(const std::vector<CommunicationRow>& rows) {
  json list = json::array();
  for (const CommunicationRow& c : rows) {
    list.push_back({{"group", c.group},
                    {"op", c.op},
                    {"link", c.link},
                    {"algorithm", c.algorithm},
                    {"count", c.count},
                    {"bytes_per_gpu", c.bytes_per_gpu},
                    {"time_s", c.time_s},
                    {"exposed_s", c.exposed_s}});
  }
  return list;
}

json links_json(const std::vector<LinkUseRow>& rows) {
  json list = json::array();
  for (const LinkUseRow& l : rows) list.push_back({{"link", l.link}, {"of", l.of}, {"share", l.share}});
  return list;
}

json weights_json(const std::vector<WeightRow>& rows) {
  json list = json::array();
  for (const WeightRow& w : rows)
    list.push_back({{"name", w.name}, {"versions", w.versions}, {"staleness", w.staleness}});
  return list;
}

json simulation_json(const Report& r) {
  return {{"tasks", r.simulation.tasks},
          {"ranks_simulated", r.simulation.ranks_simulated},
          {"ranks", r.simulation.ranks},
          {"wall_s", r.simulation.wall_s}};
}

}  // namespace

std::string to_json(const Report& r) {
  const auto known = [](double share) { return share > 0 ? json(share) : json(nullptr); };
  json root = {{"schema", "orrery.report/2"},
               {"source", r.source},
               {"plan_hash", r.plan_hash},
               {"software_version", r.software_version},
               {"profile_hash", r.profile_hash},
               {"step_time_s", r.step_time_s},
               {"step_time_low_s", r.step_time_low_s},
               {"step_time_high_s", r.step_time_high_s},
               {"tokens_per_s", r.tokens_per_s},
               {"tokens_per_s_per_gpu", r.tokens_per_s_per_gpu},
               {"model_tflops_per_gpu", r.model_tflops_per_gpu},
               {"hardware_tflops_per_gpu", r.hardware_tflops_per_gpu},
               {"mfu", known(r.mfu)},
               {"mfu_full_attention", known(r.mfu_full_attention)},
               {"hfu", known(r.hfu)},
               {"bubble_fraction", r.bubble_fraction},
               {"time_s", time_json(r.time_s)},
               {"memory", memory_json(r)},
               {"communication", communication_json(r.communication)},
               {"links", links_json(r.links)},
               {"remarks", r.remarks},
               {"cost", {{"gpu_hours", r.gpu_hours}, {"usd", nullptr}}},
               {"simulation", simulation_json(r)}};
  if (!r.models.empty()) root["models"] = models_json(r.models);
  if (r.variation) root["variation"] = {{"step_p50_s", r.variation->p50}, {"step_p95_s", r.variation->p95}};
  if (r.hashes) root["hashes"] = {{"step_p50_s", r.hashes->p50}, {"step_p95_s", r.hashes->p95}};
  if (r.checkpoint)
    root["checkpoint"] = {{"bytes", r.checkpoint->bytes},           {"node_bytes", r.checkpoint->of_node},
                          {"copies_s", r.checkpoint->copies},       {"writing_s", r.checkpoint->writing},
                          {"stall_s", r.checkpoint->stall},         {"host_bytes", r.checkpoint->host_bytes},
                          {"step_share", r.checkpoint->step_share}, {"run_share", r.checkpoint->run_share}};
  if (r.checkpoint && r.checkpoint->step_in_flight > 0) {
    root["checkpoint"]["step_in_flight_s"] = r.checkpoint->step_in_flight;
    root["checkpoint"]["slowed_s"] = r.checkpoint->slowed;
  }
  if (r.roll_back_s > 0) root["roll_back_s"] = r.roll_back_s;
  if (!r.weights.empty()) root["weights"] = weights_json(r.weights);
  if (!r.losses.empty()) root["losses"] = r.losses;
  return root.dump(2) + "\n";
}

}  // namespace orrery
