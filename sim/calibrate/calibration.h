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

// The waits between the tasks of one step, as plain means, which add up to the whole time between tasks: a wait lasts
// from the moment when a task could run, but for its own thread, until it ran.
struct Waits {
  Seconds gap = 0, transfer_start = 0, wake = 0;  // the waits of the same names in MeasuredTimes
  Seconds busy_transfer_start = 0;                // transfer_start of a transfer whose rank computes meanwhile
  // host_start: wait before the host copies or updates; host_wake: wait of a task for the end of such work.
  Seconds host_start = 0, host_wake = 0;
  std::vector<bool> busy;  // by task: whether it is a transfer whose rank computes meanwhile
};

// Durations of single tasks in executed runs, sorted by their kind of work. From each run the class takes the middle
// half of the steps by duration, without the first two, which warm up: typical steps, without outliers. A task counts
// as alone if nothing else of its rank runs, and as slowed if a transfer (for a compute task) or compute (for a
// transfer) runs all the while; the same holds for compute beside the copies and updates of the host.
class Observations {
 public:
  // unfolded: the plan of all ranks.
  void add(const Plan& unfolded, std::span<const RankRun> runs);
  // Adds the compute of ranks that ran one by one, each alone on the device (compose.h): of transfers and of waits such
  // runs say nothing.
  void add_alone(const Plan& unfolded, std::span<const RankRun> runs);

  // The samples: a mean over the middle half of the repetitions, so that they add up to a typical step. Kinds of work
  // that were never alone are left out; transfers of almost the same size are one sample.
  MeasuredTimes times() const;

  // Quartile distance over median, averaged over all compute by time: how reliable one repetition is. Ops whose number
  // of tokens a router decides, and the work of the host, are not counted.
  double noise() const;

  static Waits waits(const Plan& unfolded, const Trace& step);

 private:
  struct Seen {
    double amount = 0;
    std::vector<Seconds> alone, slowed;
    // beside: times of compute while the host copies or updates; copied: times of the host's work while the rank
    // computes.
    std::vector<Seconds> beside, copied;
    bool steady = false;  // whether it is compute, with the same size every time
  };
  struct Step;  // one step of one run, while it is read
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

// A spec that calibrate runs: its text, or a file of the user's with overrides. composed: the ranks run one by one.
struct CalibrationSpec {
  std::string name, text;
  std::string path;
  std::vector<std::string> overrides;
  std::int64_t steps = 12;  // enough for the repetitions
  bool composed = false;
};

// The specs of a grid of shapes: models of one or two layers, with every kind of op that CPU ranks execute, and
// strategies that move every kind of transfer, each between tasks that wait for it; a few in which transfers run under
// compute.
std::vector<CalibrationSpec> calibration_specs(std::int64_t ranks, bool quick);

// The calibration specs for one GPU: bf16, one layer each, with the widths of models of 0.3 to 70 billion parameters.
std::vector<CalibrationSpec> gpu_calibration_specs(bool quick);

}  // namespace orrery
