#include <unistd.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <map>
#include <thread>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/output_file.h"
#include "models/cost/profile.h"
#include "sim/calibrate/calibration.h"
#include "sim/calibrate/own_shapes.h"
#include "sim/cli/commands.h"
#include "sim/print/table.h"
#include "sim/runs/gpu_probe.h"
#include "sim/runs/job.h"
#include "sim/runs/launch.h"

namespace orrery {
namespace {

constexpr int kAttempts = 3;

// The system's load average over one minute, which shows whether other programs use this machine.
std::string load() {
  double one = 0;
  return ::getloadavg(&one, 1) == 1 ? fmt::format("{:.1f}", one) : "unknown";
}

std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

struct Measured {
  Job job;
  std::vector<RankRun> runs;
  double noise = 0;

  void add_to(Observations& all) const {
    job.options.composed ? all.add_alone(job.plan, runs) : all.add(job.plan, runs);
  }
};

Measured measure(const CalibrationSpec& spec, const std::string& folder, const std::string& device,
                 const Common& common) {
  const std::string path = spec.path.empty() ? folder + "/calibration.yaml" : spec.path;
  if (spec.path.empty()) std::ofstream(path) << spec.text;
  Measured m{make_job({.spec = path,
                       .overrides = spec.overrides,
                       .device = device,
                       .steps = spec.steps,
                       .composed = spec.composed}),
             {},
             0};
  // This is checked for the user's specs only: the built-in ones have as many ranks as --ranks says.
  if (!spec.path.empty()) check_cores(m.job, std::thread::hardware_concurrency());
  m.runs = run_job(m.job, common);
  Observations seen;
  m.add_to(seen);
  m.noise = seen.noise();
  return m;
}

// Thrown when measurements are too noisy to be of use, as when other programs use the machine.
struct TooNoisy : Error {
  using Error::Error;
};

// Measures a spec up to kAttempts times, until the noise of one attempt is accepted, and returns the attempt with the
// least noise. On a GPU a noisy attempt is used and reported as noisy, because the user of a rented GPU cannot lock its
// clocks.
Measured measure_quietly(const CalibrationSpec& spec, const std::string& folder, const CalibrateOptions& options,
                         const Common& common) {
  const double limit = options.noise;
  Measured best = measure(spec, folder, options.device, common);
  for (int i = 1; i < kAttempts && best.noise > limit; ++i) {
    Measured again = measure(spec, folder, options.device, common);
    if (again.noise < best.noise) best = std::move(again);
  }
  if (best.noise > limit && options.device != "cuda") {
    throw TooNoisy(
        fmt::format("calibrate: '{}' is too noisy: repetitions differ by {:.0f} % (quartiles), {:.0f} % are "
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

// Adds to the profile the GPU's identity, and measurements of single kernels for sizes that the runs did not measure.
void describe_gpu(Profile& profile, const GpuProbe& probe, const std::string& clocks_before) {
  profile.fingerprint.insert(profile.fingerprint.end(), probe.fingerprint.begin(), probe.fingerprint.end());
  profile.fingerprint.emplace_back("clocks before", clocks_before);
  profile.fingerprint.emplace_back("clocks after", gpu_clocks());
  std::map<std::string, std::string> keys(profile.fingerprint.begin(), profile.fingerprint.end());
  for (const char* of_hosts : {"cores", "link", "ranks"}) keys.erase(of_hosts);
  profile.fingerprint.assign(keys.begin(), keys.end());
  profile.name = keys["device"];
  add_samples(profile.measured, probe.kernels);
}

void write_file(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

void write_kernels(const CalibrateOptions& options, const GpuProbe& probe) {
  const std::string stem = options.out.ends_with(".json") ? options.out.substr(0, options.out.size() - 5) : options.out;
  write_file(stem + ".kernels.json", probe.text);
}

// Results of all calibration specs: the accepted measurements, and lines about runs that failed or were noisy.
struct Outcomes {
  Observations all;
  std::vector<std::string> failed, noisy;
  std::size_t taken = 0;
};

std::string summary(const Profile& profile, const CalibrateOptions& options, const Outcomes& outcomes) {
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
      {"spread", fmt::format("{:.1f} % between quartiles", 100 * outcomes.all.noise())}};
  std::string text = print(table);
  for (const std::string& line : outcomes.noisy) text += fmt::format("noisy: {}\n", line);
  for (const std::string& line : outcomes.failed) text += fmt::format("failed: {}\n", line);
  return text;
}

// The number of specs that may fail one after the other, before any was measured, until calibration gives up.
constexpr std::size_t kHopeless = 3;

// Runs a complete calibration: all specs one after the other, then writes the profile.
class Calibration {
 public:
  Calibration(const CalibrateOptions& options, const Common& common)
      : options_(options),
        common_(common),
        gpu_(options.device == "cuda"),
        specs_(gpu_ ? gpu_calibration_specs(options.quick) : calibration_specs(options.ranks, options.quick)),
        folder_(short_temporary()),
        load_before_(load()) {
    // The grid's specs are run first, so that the first spec describes the device whatever the user's specs are.
    for (const std::string& path : options.own) {
      specs_.push_back(own_shapes(path, options.device));
      if (specs_.back().overrides.empty())
        common_.progress(fmt::format("{}: fewer layers hold not all of its products: all of the step is run", path));
    }
  }

  Outcome run() {
    if (gpu_) {
      clocks_before_ = gpu_clocks();
      probe_ = probe_gpu(folder_.path(), options_.quick);
      write_kernels(options_, probe_);
    }
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      add(i);
      // written after each spec, as a rented GPU may be taken back at any time
      if (gpu_ && outcomes_.taken > 0) write_profile();
    }
    const Profile profile = write_profile();
    return {.text = summary(profile, options_, outcomes_),
            .status = outcomes_.failed.empty() ? 0 : 1,
            .spread = outcomes_.all.noise()};
  }

 private:
  // Runs a spec and adds its samples. A spec that fails is left out and reported; calibration gives up if no spec
  // succeeds.
  void add(std::size_t i) {
    const std::string& name = specs_[i].name;
    Common quieter = common_;
    quieter.progress = [&](std::string_view line) {
      common_.progress(fmt::format("{} of {}, {}, {}", i + 1, specs_.size(), name, line));
    };
    try {
      const Measured m = measure_quietly(specs_[i], folder_.path(), options_, quieter);
      m.add_to(outcomes_.all);
      if (outcomes_.taken++ == 0) describe(profile_, m.runs[0], options_, load_before_);
      if (m.noise > options_.noise)
        outcomes_.noisy.push_back(fmt::format("{}: repetitions differ by {:.0f} % (quartiles)", name, 100 * m.noise));
    } catch (const TooNoisy&) {
      throw;
    } catch (const Error& error) {
      outcomes_.failed.push_back(fmt::format("{}: {}", name, error.what()));
      const bool last = i + 1 == specs_.size() || outcomes_.failed.size() == kHopeless;
      if (outcomes_.taken == 0 && last) throw;
    }
  }

  Profile write_profile() const {
    Profile profile = profile_;
    profile.measured = outcomes_.all.times();
    if (outcomes_.taken < specs_.size())
      profile.fingerprint.emplace_back("specs", fmt::format("{} of {}", outcomes_.taken, specs_.size()));
    if (!outcomes_.noisy.empty())
      profile.fingerprint.emplace_back("noisy", fmt::format("{}", fmt::join(outcomes_.noisy, "; ")));
    if (gpu_) describe_gpu(profile, probe_, clocks_before_);
    write_file(options_.out, to_json(profile));
    return profile;
  }

  const CalibrateOptions& options_;
  const Common& common_;
  bool gpu_;
  std::vector<CalibrationSpec> specs_;
  TemporaryFolder folder_;
  std::string load_before_, clocks_before_;
  GpuProbe probe_;
  Profile profile_;  // the profile, still without measured times
  Outcomes outcomes_;
};

}  // namespace

Outcome calibrate_command(const CalibrateOptions& options, const Common& common) {
  if (!options.imports.empty() && !options.own.empty())
    throw Error("calibrate: --for measures here, --import reads what was measured elsewhere: give one of them");
  if (!options.imports.empty()) return import_command(options);
  if (options.out.empty()) throw Error("calibrate: --out FILE is missing: the profile to write");
  return Calibration(options, common).run();
}

}  // namespace orrery
