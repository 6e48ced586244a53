#include "sim/runs/gpu_probe.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/base/sensible.h"
#include "models/trace/measured_json.h"
#include "sim/runs/launch.h"
#include "sim/runs/processes.h"

namespace orrery {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Runs a program to its end and returns the text that it printed. If the program fails, throws Error with the last line
// of that text.
std::string run(const std::vector<std::string>& words, const std::string& log) {
  const HeldSignals signals;
  ProcessTree tree(signals);
  tree.start(words, {}, log);
  while (!tree.status()) tree.wait(kLook);
  std::string text = text_of(log);
  if (*tree.status() == 0) return text;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  throw Error(text.substr(text.rfind('\n') + 1), 1);
}

}  // namespace

GpuProbe probe_gpu(const std::string& folder, bool quick) {
  const std::string program = find_rank_program("cuda");
  GpuProbe probe;
  std::istringstream lines(run({program, "--describe"}, folder + "/describe.log"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) probe.fingerprint.emplace_back(line.substr(0, colon), line.substr(colon + 2));
  }
  const std::string path = folder + "/bench.json";
  std::vector<std::string> words = {program, "--bench", path};
  if (quick) words.emplace_back("quick");
  run(words, folder + "/bench.log");
  probe.text = text_of(path);
  const nlohmann::json bench = parse_json(path, probe.text);
  const JsonValue root(bench, path);
  probe.kernels = measured_of(root.at("measured"));
  probe.kernels.beside_slowdown = std::max(1.0, root.number_or("slowdown_by_copy", 1, 0, sensible::kMostSlowdown));
  return probe;
}

std::string gpu_clocks() {
  constexpr char kQuery[] =
      "nvidia-smi --query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu --format=csv,noheader 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(kQuery, "r"), ::pclose);
  std::array<char, 256> line{};
  if (pipe == nullptr || std::fgets(line.data(), line.size(), pipe.get()) == nullptr) return "unknown";
  std::string text = line.data();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? "unknown" : text;
}

void add_samples(MeasuredTimes& times, const MeasuredTimes& more) {
  times.beside_slowdown = std::max(times.beside_slowdown, more.beside_slowdown);
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
