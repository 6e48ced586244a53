#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// An operation of a run that was measured on many ranks: work of one lane of one worker from `begin` to `end`, in
// seconds of the trace's clock.
struct MeasuredOp {
  std::int32_t worker = 0;  // index of the data rank, or of the rank if the trace does not name stages
  std::int32_t stage = 0;   // pipeline stage; 0 if the trace does not name stages
  std::int32_t lane = 0;    // index of the lane (stream or thread), which runs one operation after another
  std::int64_t step = 0;
  std::uint32_t op = 0;     // kind of the operation, as an index in MeasuredRun::ops
  std::uint32_t pool = 0;   // number of a set (pool) of operations that do equal work, and should take equal time
  std::int64_t group = -1;  // number of the transfer that this operation and those of other ranks belong to; -1: none
  double begin = 0, end = 0;
  // Whether other operations of its rank do not wait for this operation unless they are in the same lane or name it in
  // `needs`. It is set for sends, and for receives whose reader is known.
  bool aside = false;
  // index of an operation (in MeasuredRun::operations) that this one surely waits for; -1: none is known
  std::int64_t needs = -1;
};

// The operations of a run, in no particular order. The time of an operation that is a transfer includes waiting for
// other ranks.
struct MeasuredRun {
  std::vector<MeasuredOp> operations;
  std::vector<std::string> ops;  // names of the kinds of operation: "forward-compute", "gemm", "all_reduce data"
  // for each pool (operations that do equal work), its name: that of the kernel and its number in a step; empty where
  // the names of ops say as much
  std::vector<std::string> pool_names;
  std::vector<bool> transfers;       // for each kind of operation, whether it moves data between ranks
  std::vector<std::string> workers;  // names of the workers: data ranks, or ranks if the trace does not name stages
  std::int32_t stages = 1;
  std::vector<std::string> remarks;                           // sentences about what the files lack
  std::map<std::string, std::uint32_t, std::less<>> numbers;  // for each name in `ops`, its index

  // the index of a kind of operation in `ops`, to which it is added if it is new
  std::uint32_t op(std::string_view name, bool transfer);
  // Sorts the workers by their names, in which digits count as numbers.
  void sort_workers();
};

// Reads the files of one measured run, in one of three forms: CSV rows (rank, stage, step, op, micro_batch, start_us,
// duration_us); events of a Chrome trace with the arguments step and seq_id; or kernels in traces of PyTorch's profiler
// or of `orrery run --trace`. A file may hold one rank or several. Throws Error "file:line: what, and what to do".
MeasuredRun read_measured_run(const std::vector<std::string>& files);

// Shifts the clocks of workers one after another, so that the transfers that a worker shares with an already shifted
// one end at the same time on both, in the median. Returns the largest shift in seconds.
double repair_clocks(MeasuredRun& run);

}  // namespace orrery
