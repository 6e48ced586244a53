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
// from the moment when nothing but its own thread held a task up until the task ran.
struct Waits {
  Seconds gap = 0, transfer_start = 0, wake = 0;  // as in MeasuredTimes
  Seconds busy_transfer_start = 0;                // transfer_start of a transfer whose rank computes meanwhile
  Seconds host_start = 0, host_wake = 0;  // wait before the host copies or updates, and wait of a task for such work
  std::vector<bool> busy;                 // by task: whether it is a transfer whose rank computes meanwhile
};

// Durations of single tasks in executed runs, sorted by their kind of work. From each run the class takes the middle
// half of the steps by duration, without the first two, which warm up: typical steps, without outliers. A task counts
// as alone if nothing else of its rank runs, and as slowed if a transfer (for a compute task) or compute (for a
// transfer) runs all the while; the same goes for compute beside the copies and updates of the host.
class Observations {
 public:
  // unfolded: the plan of all ranks.
  void add(const Plan& unfolded, std::span<const RankRun> runs);

  // The samples: means of the repetitions' middle half, which add up to a typical step. Kinds that were never alone are
  // left out; transfers of almost the same size are one sample.
  MeasuredTimes times() const;

  // Quartile distance over median, averaged over all compute by time: the reliability of one repetition. Ops whose
  // number of tokens a router decides, and the work of the host, take no part.
  double noise() const;

  static Waits waits(const Plan& unfolded, const Trace& step);

 private:
  struct Seen {
    double amount = 0;
    std::vector<Seconds> alone, slowed;
    std::vector<Seconds> beside, copied;  // times of compute beside the host's work, and the other way round
    bool steady = false;                  // whether it is compute of the same size every time
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

// The specs that calibrate runs, as texts: models of one or two layers over a grid of shapes, with every kind of op
// that CPU ranks execute, and strategies that move every kind of transfer, each between tasks that wait for it; a few
// in which transfers run under compute. steps: enough for the repetitions.
struct CalibrationSpec {
  std::string name, text;
  std::int64_t steps = 12;
};
std::vector<CalibrationSpec> calibration_specs(std::int64_t ranks, bool quick);

// The calibration specs for one GPU: bf16, widths of models of 0.3 to 70 billion parameters, a layer of each.
std::vector<CalibrationSpec> gpu_calibration_specs(bool quick);

}  // namespace orrery
