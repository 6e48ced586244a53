#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/whatif/measured_run.h"
#include "sim/whatif/run_rows.h"

namespace orrery {

// Collects the kernels of one measured run from traces of PyTorch's profiler, or of `orrery run --trace`. Each rank is
// a worker. In the order in which kernels begin, the n-th kernel of one name in a step is taken to do the same work on
// every rank. The n-th collective of a process group in a step is one transfer of all its ranks, and so is the n-th
// message from one rank to another. Where ranks run different numbers of them in a step, it is not known which belong
// together: they stay transfers of one rank each, and a remark says so.
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
  MeasuredRun take();

 private:
  struct Call {
    std::string group, name;  // group: a text that only kernels of one process group share; name: kind of op
    bool sends = false;       // whether the kernel only sends
  };
  struct Part {
    std::int64_t group = -1;  // index of the process group in groups_, or of the pair of ranks; -1: none
    std::uint32_t work = 0;   // index of the kernel's name in works_
  };
  static Call call_of(const std::string& arguments);
  void number_pools(const std::vector<std::size_t>& order);
  void number_groups(const std::vector<std::size_t>& order);

  MeasuredRun run_;
  std::size_t without_group_ = 0;  // number of kernels of collectives that say nothing of their ranks
  std::vector<Part> parts_;        // for each operation of run_, what it takes part in
  std::map<std::string, std::int32_t> workers_, lanes_;
  std::map<std::string, std::int64_t> groups_;
  std::map<std::string, std::uint32_t> works_;
};

// Reads a Chrome trace of a measured run: adds ops that a program logged (events with the arguments step and seq_id) to
// `rows`, and kernels to `kernels`. Throws Error "path:line: what, and what to do".
void read_run_events(const std::string& path, RunRows& rows, KernelRun& kernels);

}  // namespace orrery
