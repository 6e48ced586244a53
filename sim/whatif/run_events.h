#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/whatif/measured_run.h"
#include "sim/whatif/run_rows.h"

namespace orrery {

// Collects the kernels of one measured run from traces of PyTorch's profiler, or of `orrery run --trace`. Each rank is
// a worker. The n-th kernel of one name in a step is taken to do the same work on every rank. The n-th collective of a
// process group is one transfer of all its ranks, and so is the n-th message from one rank to another.
class KernelRun {
 public:
  struct Kernel {
    std::string worker, lane, name, kind;  // kind: kind of op that only Orrery's own traces give
    std::string arguments;  // JSON text of a collective's arguments (process group, ranks); "" for other kernels
    std::int64_t step = 0;
    double begin = 0, time = 0;  // begin and duration in seconds
  };
  void add(const Kernel& kernel);
  bool empty() const { return run_.operations.empty(); }
  MeasuredRun take() { return std::move(run_); }

 private:
  struct Call {
    std::string key, name;  // key: a text that only the kernels of one transfer share; name: kind of op
    bool sends = false;     // whether the kernel only sends
  };
  Call call_of(std::int32_t worker, const std::string& arguments);

  MeasuredRun run_;
  std::map<std::string, std::int32_t> workers_, lanes_;
  std::map<std::string, std::int64_t> groups_, seen_;
  std::map<std::string, std::uint32_t> pools_;
};

// Reads a Chrome trace of a measured run: adds ops that a program logged (events with the arguments step and seq_id) to
// `rows`, and kernels to `kernels`. Throws Error "path:line: what, and what to do".
void read_run_events(const std::string& path, RunRows& rows, KernelRun& kernels);

}  // namespace orrery
