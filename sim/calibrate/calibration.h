#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/plan/plan.h"
#include "models/trace/measured_times.h"
#include "models/trace/trace.h"
#include "models/trace/trace_file.h"

namespace orrery {

// The mean waits in seconds between the tasks of one step (plain means, so that they add up to the total time between
// tasks). A wait lasts from the moment when a task's dependencies have ended until the task's thread begins the task.
struct Waits {
  // Mean waits in seconds. gap: between tasks of the compute lane; transfer_start: before a transfer; wake: of a task
  // that waited for a transfer.
  Seconds gap = 0, transfer_start = 0, wake = 0;
  Seconds busy_transfer_start = 0;  // mean wait before a transfer whose rank computes meanwhile
  // host_start: mean wait before the host starts a copy or update; host_wake: mean wait of a task that depends on such
  // a copy or update, from the end of that until the task begins.
  Seconds host_start = 0, host_wake = 0;
  std::vector<bool> busy;  // for each task, whether it is a transfer whose rank computes meanwhile
};

// Durations of single tasks in executed runs, collected by kind of op and sizes. Only typical steps of a run are used:
// the first third of the steps (two at least), which warm up, is left out, and the middle half of the others by
// duration counts. A task counts as alone if no other task of its rank runs at the same time. A compute task counts as
// slowed if a transfer runs during nearly all of it, and a transfer counts as slowed if compute runs during nearly all
// of it; copies and updates by the host at the same time as compute are counted in the same way. Compute at the same
// time as compute on another lane (stream) does not count, because its time says nothing about either alone.
class Observations {
 public:
  // Adds the times that the ranks of one run measured. unfolded: the plan with the tasks of every rank.
  void add(const Plan& unfolded, std::span<const RankRun> runs);
  // Adds the compute times of ranks that ran one by one, each alone on the device (compose.h). Such runs say nothing
  // about transfers and waits.
  void add_alone(const Plan& unfolded, std::span<const RankRun> runs);

  // The collected samples. Each is a mean over the middle half of the repetitions, so that samples add up to a typical
  // step. Ops that never ran alone have no sample; transfers of almost the same size share one.
  MeasuredTimes times() const;

  // How much a compute op's measured time scatters from repetition to repetition: quartile distance over median,
  // averaged over ops, weighted by time. Ops whose number of tokens depends on a router, and the work of the host, are
  // left out.
  double noise() const;

  static Waits waits(const Plan& unfolded, const Trace& step);

 private:
  struct Seen {
    double amount = 0;
    std::vector<Seconds> alone, slowed;
    // beside: times of compute during which the host copies or updates; copied: times of the host's copies and updates
    // during which the rank computes.
    std::vector<Seconds> beside, copied;
    bool steady = false;  // whether the op is compute whose sizes are the same in every step
  };
  struct Step;  // one step of one run whose measurements are being added
  using Shapes = std::map<std::vector<double>, Seen>;
  using Sizes = std::map<Bytes, Seen>;

  void add_step(const Step& step);
  void add_compute(const Step& step, TaskId task);
  void add_transfer(const Step& step, std::uint32_t match);
  void add_waits(const Step& step, TaskId task);
  static bool computes_meanwhile(const Step& step, TaskId task);
  static void add(const Seen& one, Seen& to);

  std::map<std::string, Shapes> ops_;
  std::map<std::pair<std::string, std::int64_t>, Sizes> transfers_;
  std::vector<Seconds> issue_, gap_, transfer_start_, busy_transfer_start_, wake_, host_start_, host_wake_, step_;
};

// A spec that `orrery calibrate` runs: the text of a built-in spec, or the path of a user's file with overrides.
// composed: whether the ranks run one after another on the same device.
struct CalibrationSpec {
  std::string name, text;
  std::string path;
  std::vector<std::string> overrides;
  std::int64_t steps = 12;  // number of steps to run, enough for a sample of every op
  bool composed = false;
};

// The number of steps for which one GPU rank must run to multiply matrices for `settle` seconds, at the rate of a
// Hopper GPU. Under its power limit a GPU needs some tenths of a second to settle on a clock rate; until then it runs
// at the clock rate of the run before.
std::int64_t settled_steps(const Plan& plan, double settle);

// The specs that calibrate CPU ranks for a grid of shapes. Their models have one or two layers with every kind of op
// that CPU ranks execute, and their strategies have every kind of transfer. In most specs other tasks wait for each
// transfer; in a few, transfers run at the same time as compute.
std::vector<CalibrationSpec> calibration_specs(std::int64_t ranks, bool quick);

// The specs that calibrate one GPU in bf16: one layer in each, with the widths of models of 0.3 to 70 billion
// parameters.
std::vector<CalibrationSpec> gpu_calibration_specs(bool quick);

}  // namespace orrery
