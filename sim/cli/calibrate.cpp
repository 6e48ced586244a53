#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <map>
#include <optional>
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
#include "sim/runs/rank_session.h"

namespace orrery {
namespace {

constexpr int kAttempts = 3;

// The system's load average over the last minute; it shows whether other programs use this machine.
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

// The folder for the files of a calibration's runs and, on a GPU, the process that makes all runs.
struct Site {
  const std::string& folder;
  RankSession* session;
};

Measured measure(const CalibrationSpec& spec, const Site& site, const CalibrateOptions& options, const Common& common) {
  const std::string path = spec.path.empty() ? site.folder + "/calibration.yaml" : spec.path;
  if (spec.path.empty()) std::ofstream(path) << spec.text;
  Measured m{make_job({.spec = path,
                       .overrides = spec.overrides,
                       .device = options.device,
                       .steps = spec.steps,
                       .composed = spec.composed}),
             {},
             0};
  if (options.device == "cuda") m.job.steps = std::max(m.job.steps, settled_steps(m.job.plan, options.settle));
  // The number of ranks is checked only for specs that the user gives: built-in specs have as many ranks as --ranks
  // says.
  if (!spec.path.empty()) check_cores(m.job, std::thread::hardware_concurrency());
  m.runs = run_job(m.job, common, site.session);
  Observations seen;
  m.add_to(seen);
  m.noise = seen.noise();
  return m;
}

// Thrown when measurements scatter too much to be of use, for example because other programs use the machine.
struct TooNoisy : Error {
  using Error::Error;
};

// Measures a spec up to kAttempts times, until the noise of a measurement is below the limit; returns the least noisy
// measurement. On a GPU even a noisy measurement is used, and reported as noisy, because the user of a rented GPU
// cannot lock its clocks.
Measured measure_quietly(const CalibrationSpec& spec, const Site& site, const CalibrateOptions& options,
                         const Common& common) {
  const double limit = options.noise;
  Measured best = measure(spec, site, options, common);
  for (int i = 1; i < kAttempts && best.noise > limit; ++i) {
    Measured again = measure(spec, site, options, common);
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

// Adds to a profile what identifies the GPU, and the measurements of single kernels that were made besides the runs of
// specs.
void describe_gpu(Profile& profile, const GpuProbe& probe) {
  profile.fingerprint.insert(profile.fingerprint.end(), probe.fingerprint.begin(), probe.fingerprint.end());
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

// The path of a further file in the folder of the profile: for the profile "gpu.json" and the word "kernels" it is
// "gpu.kernels.json".
std::string beside(const CalibrateOptions& options, std::string_view what) {
  const std::string stem = options.out.ends_with(".json") ? options.out.substr(0, options.out.size() - 5) : options.out;
  return fmt::format("{}.{}.json", stem, what);
}

// The results of all calibration specs: the accepted measurements, and lines about runs that failed or were noisy.
struct Outcomes {
  Observations all;
  std::vector<std::string> failed, noisy;
  std::size_t taken = 0;
  std::vector<Conditions> conditions;  // clocks and power of each run, if a GPU's sensors gave them
  double drift = 1;                    // factor by which the clock changed from the first to a repeated run of a spec
  bool repeated = false;               // whether all specs were measured again because the GPU's clock had drifted
};

// Adds to the summary the lines about a GPU's clocks.
void add_clocks(Table& table, const Outcomes& outcomes) {
  const std::vector<Conditions>& all = outcomes.conditions;
  if (all.empty() || !all.front().known()) return;
  double low = all.front().sm_MHz, high = low, power = 0;
  for (const Conditions& c : all) {
    low = std::min(low, c.sm_MHz);
    high = std::max(high, c.sm_MHz);
    power = std::max(power, c.power_W);
  }
  table.rows.push_back({"clocks", fmt::format("medians {:.0f} to {:.0f} MHz over {} runs, at most {:.0f} W", low, high,
                                              all.size(), power)});
  table.rows.push_back(
      {"drift", fmt::format("{:+.1f} % from the first run of a spec to the last{}", 100 * (outcomes.drift - 1),
                            outcomes.repeated ? ": all measured again in reverse order" : "")});
}

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
  add_clocks(table, outcomes);
  std::string text = print(table);
  for (const std::string& line : outcomes.noisy) text += fmt::format("noisy: {}\n", line);
  for (const std::string& line : outcomes.failed) text += fmt::format("failed: {}\n", line);
  return text;
}

// Calibration gives up if this many specs fail in a row at the beginning, before any spec was measured.
constexpr std::size_t kHopeless = 3;
// A GPU's clock has drifted if it changed by more than this share between two runs of the same spec. The value is two
// thirds of the wanted accuracy (3 %). Runs under equal conditions differ by less: on an H200 their median clocks, each
// over a second, differ by one or two steps of 15 MHz.
constexpr double kDrift = 0.02;

// Runs a complete calibration: all specs one after the other, then writes the profile.
class Calibration {
 public:
  Calibration(const CalibrateOptions& options, const Common& common)
      : options_(options),
        common_(common),
        gpu_(options.device == "cuda"),
        specs_(gpu_ ? gpu_calibration_specs(options.quick) : calibration_specs(options.ranks, options.quick)),
        folder_(temporary_parent()),
        load_before_(load()) {
    // The user's specs run after the built-in ones for a grid of shapes. The profile's description of the device comes
    // from the first run, which thus is always that of a built-in spec.
    for (const std::string& path : options.own) {
      specs_.push_back(own_shapes(path, options.device));
      if (specs_.back().overrides.empty())
        common_.progress(fmt::format("{}: fewer layers hold not all of its products: all of the step is run", path));
    }
  }

  Outcome run() {
    if (gpu_) {
      session_.emplace();
      probe_ = probe_gpu(*session_, folder_.path(), options_.quick);
      if (probe_.conditions.known()) outcomes_.conditions.push_back(probe_.conditions);
      write_file(beside(options_, "kernels"), probe_.text);
    }
    const std::size_t grid = specs_.size() - options_.own.size();
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      // The profile made from the grid of shapes alone is also written to a file of its own: comparing it with the
      // complete profile shows what --for gains.
      if (gpu_ && i == grid && outcomes_.taken > 0) write_profile(beside(options_, "grid"));
      add(i);
      // The file is written after each spec, as a rented GPU may be taken back at any time.
      if (gpu_ && outcomes_.taken > 0) write_profile(options_.out);
    }
    if (gpu_) balance_drift();
    const Profile profile = write_profile(options_.out);
    if (session_) session_->end();
    return {.text = summary(profile, options_, outcomes_),
            .status = outcomes_.failed.empty() ? 0 : 1,
            .spread = outcomes_.all.noise()};
  }

 private:
  // Runs a spec and adds its measurements. A spec that fails is left out and reported; calibration gives up if too many
  // fail before one succeeds.
  void add(std::size_t i) {
    const std::string& name = specs_[i].name;
    Common quieter = common_;
    quieter.progress = [&](std::string_view line) {
      common_.progress(fmt::format("{} of {}, {}, {}", i + 1, specs_.size(), name, line));
    };
    try {
      const Measured m =
          measure_quietly(specs_[i], {folder_.path(), session_ ? &*session_ : nullptr}, options_, quieter);
      m.add_to(outcomes_.all);
      if (outcomes_.taken++ == 0) describe(profile_, m.runs[0], options_, load_before_);
      if (m.runs[0].conditions.known()) {
        outcomes_.conditions.push_back(m.runs[0].conditions);
        outcomes_.conditions.back().during = name;
      }
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

  // Returns the index of the spec that is run once more to see whether the GPU's clock has drifted: the spec of the
  // first run in which the clock was limited (by power, for example), else that of the first run with known clocks.
  // Returns the number of specs if no run has known clocks.
  std::size_t shows_drift() const {
    std::size_t first = specs_.size();
    for (const Conditions& c : outcomes_.conditions) {
      const auto spec = std::ranges::find(specs_, c.during, &CalibrationSpec::name);
      if (spec == specs_.end()) continue;  // these clocks are those of the kernel benchmark, not of a spec's run
      const auto index = static_cast<std::size_t>(spec - specs_.begin());
      if (!c.limited_by.empty()) return index;
      if (first == specs_.size()) first = index;
    }
    return first;
  }

  // Runs one spec once more. If the GPU's clock differs from the one at the spec's first run, measures all specs a
  // second time in reverse order; a drift that is steady in time then cancels in the means of both measurements.
  void balance_drift() {
    const std::size_t runs = outcomes_.conditions.size(), shows = shows_drift();
    if (shows == specs_.size()) return;  // no clocks are known: the GPU's sensors could not be read
    const Conditions then = *std::ranges::find(outcomes_.conditions, specs_[shows].name, &Conditions::during);
    const std::size_t taken = outcomes_.taken;
    add(shows);
    if (outcomes_.conditions.size() == runs) return;  // no clocks were added: the repeated run failed
    outcomes_.drift = clock_change(then, outcomes_.conditions.back());
    outcomes_.repeated = std::abs(outcomes_.drift - 1) > kDrift;
    for (std::size_t i = specs_.size(); outcomes_.repeated && i-- > 0;) add(i);
    outcomes_.taken = taken;
  }

  Profile write_profile(const std::string& path) const {
    Profile profile = profile_;
    profile.conditions = outcomes_.conditions;
    profile.measured = outcomes_.all.times();
    if (outcomes_.taken < specs_.size())
      profile.fingerprint.emplace_back("specs", fmt::format("{} of {}", outcomes_.taken, specs_.size()));
    if (!outcomes_.noisy.empty())
      profile.fingerprint.emplace_back("noisy", fmt::format("{}", fmt::join(outcomes_.noisy, "; ")));
    if (outcomes_.repeated)
      profile.fingerprint.emplace_back(
          "drift", fmt::format("{:+.1f} %: all specs measured again in reverse order", 100 * (outcomes_.drift - 1)));
    if (gpu_) describe_gpu(profile, probe_);
    write_file(path, to_json(profile));
    return profile;
  }

  const CalibrateOptions& options_;
  const Common& common_;
  bool gpu_;
  std::vector<CalibrationSpec> specs_;
  TemporaryFolder folder_;
  std::string load_before_;
  std::optional<RankSession> session_;
  GpuProbe probe_;
  Profile profile_;  // the profile before any measured times are added
  Outcomes outcomes_;
};

}  // namespace

Outcome calibrate_command(const CalibrateOptions& options, const Common& common) {
  if (!options.imports.empty() && !options.own.empty())
    throw Error("calibrate: --for measures here, --import reads what was measured elsewhere: give one of them");
  if (!options.from_steps.empty() && (!options.imports.empty() || !options.own.empty()))
    throw Error("calibrate: --from-steps takes measured steps alone: leave --for and --import out", 2);
  if (!options.from_steps.empty()) return calibrate_steps_command(options, common);
  if (!options.imports.empty()) return import_command(options);
  if (options.out.empty()) throw Error("calibrate: --out FILE is missing: the profile to write");
  return Calibration(options, common).run();
}

}  // namespace orrery
