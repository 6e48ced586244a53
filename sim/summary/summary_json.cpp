#include <nlohmann/json.hpp>

#include "sim/summary/summary_text.h"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

// Writes JSON. Bytes that are no UTF-8 are replaced, since names of files and kernels may hold any bytes.
std::string dump_summary(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n'; }

Json rank_total_json(const RankTotal& r) {
  const DeviceTimes& d = r.times;
  Json json = {{"name", r.name},
               {"file", r.file},
               {"device", r.device},
               {"time_s", seconds_of(d.window)},
               {"busy_s", seconds_of(d.busy())},
               {"compute_s", seconds_of(d.compute)},
               {"communication_s", seconds_of(d.communication)},
               {"exposed_communication_s", seconds_of(d.exposed_communication)},
               {"copy_s", seconds_of(d.copy)},
               {"exposed_copy_s", seconds_of(d.exposed_copy)},
               {"idle_s", seconds_of(d.idle())},
               {"idle",
                {{"host_s", seconds_of(d.idle_host)},
                 {"kernel_s", seconds_of(d.idle_kernel)},
                 {"peers_s", seconds_of(d.idle_peers)},
                 {"other_s", seconds_of(d.idle_other)}}},
               {"steps", r.steps.count},
               {"mean_step_s", nullptr},
               {"kernels", r.kernels},
               {"tied", r.tied},
               {"memory", {{"allocated_bytes", nullptr}, {"reserved_bytes", nullptr}}}};
  if (r.steps.count > 0) json["mean_step_s"] = seconds_of(r.steps.sum) / static_cast<double>(r.steps.count);
  if (r.allocated > 0) json["memory"]["allocated_bytes"] = r.allocated;
  if (r.reserved > 0) json["memory"]["reserved_bytes"] = r.reserved;
  return json;
}

Json class_total_json(const ClassTotal& total, std::int64_t whole) {
  return {{"count", total.count},
          {"time_s", seconds_of(total.time)},
          {"share", whole == 0 ? 0 : static_cast<double>(total.time) / static_cast<double>(whole)}};
}

}  // namespace

std::string summary_json(const TraceSummary& s) {
  static constexpr std::string_view kWays[] = {"none", "id", "launch", "annotation", "plan"};
  Json json = {{"schema", "orrery.trace_summary/1"},
               {"files", s.files},
               {"events", s.events},
               {"kernels", s.kernels},
               {"kernels_without_time", s.untimed},
               {"left_out", s.left_out},
               {"kernel_time_s", seconds_of(s.time)},
               {"classified", s.classified()},
               {"tied", Json::object()},
               {"ranks", Json::array()},
               {"classes", Json::array()},
               {"by_kernel", Json::array()},
               {"by_operator", Json::array()}};
  for (std::size_t t = 0; t < kTies; ++t) json["tied"][std::string(kWays[t])] = s.ties[t];
  for (const RankTotal& r : s.ranks) json["ranks"].push_back(rank_total_json(r));
  for (std::size_t c = 0; c < kKernelClasses; ++c) {
    Json row = {{"class", name_of(static_cast<KernelClass>(c))}};
    row.update(class_total_json(s.classes[c], s.time));
    if (s.classes[c].count > 0) json["classes"].push_back(row);
  }
  for (const KernelTotal& k : s.by_kernel) {
    Json row = {{"name", k.name}, {"class", name_of(k.kernel_class)}, {"launched_by", k.launched_by}};
    row.update(class_total_json(k.total, s.time));
    row["full_name"] = k.full_name;
    json["by_kernel"].push_back(row);
  }
  for (const OperatorTotal& o : s.by_operator) {
    Json row = {{"name", o.name}};
    row.update(class_total_json(o.total, s.time));
    json["by_operator"].push_back(row);
  }
  return dump_summary(json);
}

}  // namespace orrery
