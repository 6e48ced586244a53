#include <unistd.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <map>
#include <thread>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "models/output_file.h"
#include "models/profile.h"
#include "sim/calibration.h"
#include "sim/commands.h"
#include "sim/gpu_probe.h"
#include "sim/job.h"
#include "sim/launch.h"
#include "sim/table.h"

namespace orrery {
namespace {

constexpr int kAttempts = 3;

// One minute's load average: others that run here show in it.
std::string load() {
  double one = 0;
  return ::getloadavg(&one, 1) == 1 ? fmt::format("{:.1f}", one) : "unknown";
}

std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

struct Measured {
  Job job;
  std::vector<RankRun> runs;
  double noise = 0;
};

Measured measure(const CalibrationSpec& spec, const std::string& folder, const std::string& device,
                 const Common& common) {
  const std::string path = folder + "/calibration.yaml";
  std::ofstream(path) << spec.text;
  Measured m{make_job({.spec = path, .device = device, .steps = spec.steps}), {}, 0};
  m.runs = run_job(m.job, common);
  Observations seen;
  seen.add(m.job.plan, m.runs);
  m.noise = seen.noise();
  return m;
}

// The least noisy of some attempts; the first that is quiet enough ends them.
Measured measure_quietly(const CalibrationSpec& spec, const std::string& folder, const CalibrateOptions& options,
                         const Common& common) {
  const double limit = options.noise;
  Measured best = measure(spec, folder, options.device, common);
  for (int i = 1; i < kAttempts && best.noise > limit; ++i) {
    Measured again = measure(spec, folder, options.device, common);
    if (again.noise < best.noise) best = std::move(again);
  }
  if (best.noise > limit) {
    throw Error(fmt::format("calibrate: '{}' is too noisy: repetitions differ by {:.0f} % (quartiles), {:.0f} % are "
                            "accepted; the load average is {}: stop what else runs here, or accept more with --noise",
                            spec.name, 100 * best.noise, 100 * limit, load()),
                1);
  }
  return best;
}

void describe(Profile& profile, const RankRun& run, const CalibrateOptions& options, const std::string& load_before) {
  profile.name = fmt::format("{}, {} ranks", run.device, options.ranks);
  profile.memory_bytes = run.memory.capacity;
  profile.fingerprint = {{"cores", fmt::format("{}", std::thread::hardware_concurrency())},
                         {"date", options.date.empty() ? today() : options.date},
                         {"device", run.device},
                         {"library", run.library},
                         {"link", run.link},
                         {"load after", load()},
                         {"load before", load_before},
                         {"ranks", fmt::format("{}", options.ranks)}};
}

// The measurements of single kernels fill what the runs left open; their own file lies beside the profile.
void describe_gpu(Profile& profile, const GpuProbe& probe, const CalibrateOptions& options,
                  const std::string& clocks_before) {
  profile.fingerprint.insert(profile.fingerprint.end(), probe.fingerprint.begin(), probe.fingerprint.end());
  profile.fingerprint.emplace_back("clocks before", clocks_before);
  profile.fingerprint.emplace_back("clocks after", gpu_clocks());
  std::map<std::string, std::string> keys(profile.fingerprint.begin(), profile.fingerprint.end());
  for (const char* of_hosts : {"cores", "link", "ranks"}) keys.erase(of_hosts);
  profile.fingerprint.assign(keys.begin(), keys.end());
  profile.name = keys["device"];
  add_samples(profile.measured, probe.kernels);
  const std::string stem = options.out.ends_with(".json") ? options.out.substr(0, options.out.size() - 5) : options.out;
  OutputFile file(stem + ".kernels.json");
  file.write(probe.text);
  file.commit();
}

std::string summary(const Profile& profile, const CalibrateOptions& options, double noise) {
  const MeasuredTimes& t = profile.measured;
  std::size_t ops = 0, transfers = 0;
  for (const OpTable& table : t.ops) ops += table.samples.size();
  for (const TransferTable& table : t.transfers) transfers += table.samples.size();
  Table table;
  table.columns = {{"", "", Align::left}, {"", "", Align::left}};
  table.rows = {
      {"profile", options.out},
      {"device", profile.name},
      {"ops", fmt::format("{} samples of {} kinds", ops, t.ops.size())},
      {"transfers", fmt::format("{} samples of {} kinds", transfers, t.transfers.size())},
      {"between tasks", fmt::format("issue {:.1f} us, gap {:.1f} us, transfer starts {:.1f} us, wakes {:.1f} us",
                                    t.issue * 1e6, t.gap * 1e6, t.transfer_start * 1e6, t.wake * 1e6)},
      {"overlap", fmt::format("compute takes {:.2f} times as long, transfers {:.2f} times", t.compute_slowdown,
                              t.transfer_slowdown)},
      {"host's copies", fmt::format("compute beside them takes {:.2f} times as long, they {:.2f} times",
                                    t.beside_slowdown, t.copy_slowdown)},
      {"spread", fmt::format("{:.1f} % between quartiles", 100 * noise)}};
  return print(table);
}

}  // namespace

Outcome calibrate_command(const CalibrateOptions& options, const Common& common) {
  if (!options.imports.empty()) return import_command(options);
  if (options.out.empty()) throw Error("calibrate: --out FILE is missing: the profile to write");
  const std::string load_before = load();
  const TemporaryFolder folder(short_temporary());
  const bool gpu = options.device == "cuda";
  const std::vector<CalibrationSpec> specs =
      gpu ? gpu_calibration_specs(options.quick) : calibration_specs(options.ranks, options.quick);
  Observations all;
  Profile profile;
  GpuProbe probe;
  const std::string clocks_before = gpu ? gpu_clocks() : "";
  if (gpu) probe = probe_gpu(folder.path(), options.quick);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    Common quieter = common;
    quieter.progress = [&](std::string_view line) {
      common.progress(fmt::format("{} of {}, {}, {}", i + 1, specs.size(), specs[i].name, line));
    };
    const Measured m = measure_quietly(specs[i], folder.path(), options, quieter);
    all.add(m.job.plan, m.runs);
    if (i == 0) describe(profile, m.runs[0], options, load_before);
  }
  profile.measured = all.times();
  if (gpu) describe_gpu(profile, probe, options, clocks_before);
  OutputFile file(options.out);
  file.write(to_json(profile));
  file.commit();
  return {.text = summary(profile, options, all.noise()), .spread = all.noise()};
}

}  // namespace orrery
