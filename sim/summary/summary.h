#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/summary/kernel_class.h"
#include "sim/summary/records.h"
#include "sim/summary/times.h"

namespace orrery {

// The figures of traces of any origin: per rank, per class of kernels, per kernel. Times are nanoseconds.

struct RankTotal {
  std::string name;  // "rank 3", "rank 3, GPU 1", "stage 0 (ranks 0, 1, ... x16)", or "GPU 2" if no rank is known
  std::string file;
  std::string device;  // name of the GPU, "" = not known
  DeviceTimes times;
  StepTimes steps;  // durations of the steps; StepTimes::count is 0 if the trace marks no steps
  std::int64_t kernels = 0, tied = 0;
  std::int64_t allocated = 0, reserved = 0;  // peaks of memory in bytes, 0: the trace holds none
};

struct ClassTotal {
  std::int64_t count = 0, time = 0;
};

struct KernelTotal {
  std::string name;         // short name, of one kernel or of several that differ in template arguments
  std::string full_name;    // full name of the kernel that takes most time among those with this short name
  std::string launched_by;  // operator that launched most of the time, "" = not known
  KernelClass kernel_class = KernelClass::other;
  ClassTotal total;
};

struct OperatorTotal {
  std::string name;
  ClassTotal total;
};

struct TraceSummary {
  std::vector<std::string> files;
  std::int64_t events = 0, kernels = 0, untimed = 0;
  std::map<std::string, std::int64_t> left_out;  // number of events that the summary leaves out, by category
  std::int64_t time = 0;                         // durations of all kernels and copies, added up
  std::array<std::int64_t, kTies> ties{};        // by Tie: number of kernels tied to an operator in this way
  std::vector<RankTotal> ranks;
  std::array<ClassTotal, kKernelClasses> classes{};
  std::vector<KernelTotal> by_kernel;      // all kernels by their short names, the longest total first
  std::vector<OperatorTotal> by_operator;  // operators by name, those that launched the longest time of kernels first

  std::int64_t tied() const { return kernels - ties[0]; }
  double classified() const;  // share of all kernels' time that kernels of a known class take
};

// Sums up trace files, each with the events of one rank or of several. progress: a function called from time to time
// with a line on the progress. Throws Error "file:line: what" as collect() does.
TraceSummary summarize_traces(const std::vector<std::string>& files,
                              const std::function<void(std::string_view)>& progress = {});

}  // namespace orrery
