#include "sim/runs/gpu_probe.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/base/sensible.h"
#include "models/trace/measured_json.h"

namespace orrery {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

GpuProbe probe_gpu(RankSession& session, const std::string& folder, bool quick, Seconds patience) {
  const std::string path = folder + "/bench.json";
  std::vector<std::string> words = {"--bench", path};
  if (quick) words.emplace_back("quick");
  ProcessTree& tree = session.give(words);
  // Waits for the file of measurements, which gets its final name only when it is complete.
  for (const Seconds start = now(); !tree.status() && !std::filesystem::exists(path); tree.wait(kLook)) {
    if (now() < start + patience) continue;
    session.abandon();
    throw Error(fmt::format("the GPU's kernels hang: they are not measured after {:.0f} s; run again", patience), 1);
  }
  if (!std::filesystem::exists(path)) throw Error(last_line(session.log()), 1);
  GpuProbe probe;
  probe.text = text_of(path);
  const nlohmann::json bench = parse_json(path, probe.text);
  const JsonValue root(bench, path);
  for (const auto& [key, value] : root.at("fingerprint").members()) probe.fingerprint.emplace_back(key, value.text());
  if (const auto conditions = root.find("conditions")) probe.conditions = conditions_of(*conditions);
  probe.kernels = measured_of(root.at("measured"));
  probe.kernels.beside_slowdown = std::max(1.0, root.number_or("slowdown_by_copy", 1, 0, sensible::kMostSlowdown));
  probe.kernels.sum_slowdown = std::max(1.0, root.number_or("slowdown_by_sum", 1, 0, sensible::kMostSlowdown));
  return probe;
}

void add_samples(MeasuredTimes& times, const MeasuredTimes& more) {
  times.beside_slowdown = std::max(times.beside_slowdown, more.beside_slowdown);
  times.sum_slowdown = std::max(times.sum_slowdown, more.sum_slowdown);
  for (const OpTable& table : more.ops) {
    auto it = std::find_if(times.ops.begin(), times.ops.end(), [&](const OpTable& t) { return t.kind == table.kind; });
    if (it == times.ops.end()) {
      times.ops.push_back(table);
      continue;
    }
    for (const OpSample& s : table.samples) {
      const bool known =
          std::any_of(it->samples.begin(), it->samples.end(), [&](const OpSample& x) { return x.sizes == s.sizes; });
      if (!known) it->samples.push_back(s);
    }
    std::sort(it->samples.begin(), it->samples.end(),
              [](const OpSample& a, const OpSample& b) { return a.sizes < b.sizes; });
  }
  std::sort(times.ops.begin(), times.ops.end(), [](const OpTable& a, const OpTable& b) { return a.kind < b.kind; });
}

}  // namespace orrery
