#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// An operation of a run that was measured on many ranks: what one lane of one worker did from `begin` to `end`, in
// seconds of the trace's clock.
struct MeasuredOp {
  std::int32_t worker = 0;  // index of the data rank, or of the rank where a trace does not tell stages
  std::int32_t stage = 0;   // pipeline stage; 0 where a trace does not tell stages
  std::int32_t lane = 0;    // what runs one after another on a stage of a worker: a stream, a thread
  std::int64_t step = 0;
  std::uint32_t op = 0;     // index in MeasuredRun::ops of the kind of operation
  std::uint32_t pool = 0;   // operations of one pool do equal work, so that equal workers take equal time for them
  std::int64_t group = -1;  // operations with one number are one transfer, seen by each of its ranks; -1: none
  double begin = 0, end = 0;
  bool aside = false;  // whether no other lane of its rank waits for it but an operation that needs it: a send, say
  std::int64_t needs = -1;  // index in MeasuredRun::operations of one that it surely waits for; -1: not told
};

// The operations of a run, in no order. An operation that is a transfer holds the time in which it waited for other
// ranks too.
struct MeasuredRun {
  std::vector<MeasuredOp> operations;
  std::vector<std::string> ops;      // [op]: "forward-compute", "gemm", "all_reduce data"
  std::vector<bool> transfers;       // [op]: whether it moves data between ranks
  std::vector<std::string> workers;  // [worker]: name of a worker
  std::int32_t stages = 1;

  std::uint32_t op(std::string_view name, bool transfer);  // index of a kind of operation, which is added if new
};

// Reads the files of one run: rows (CSV: rank, stage, step, op, micro_batch, start_us, duration_us), the same as events
// of a Chrome trace with the arguments step and mb_id, or kernels in traces of PyTorch's profiler or of `orrery run
// --trace`, a file per rank or several ranks in one. Throws Error "file:line: what, and what to do".
MeasuredRun read_measured_run(const std::vector<std::string>& files);

// Sets the clocks of workers so that transfers end at the same time on all their ranks, in the median over the
// transfers that two workers have in common. Returns the largest shift in seconds.
double repair_clocks(MeasuredRun& run);

}  // namespace orrery
