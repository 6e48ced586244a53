#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/whatif/measured_run.h"

namespace orrery {

// A row of a log in which a program records its own ops (forward, backward, sends, collectives) rather than kernels:
// the time of an op on a stage of a data rank.
struct RunRow {
  std::int64_t worker = 0, stage = 0, step = 0;
  std::string op;
  std::int64_t chunk = -1, micro_batch = -1;  // numbers of the model chunk and of the micro-batch; -1: not given
  std::int64_t sequence = -1;                 // number of the op among equal ops; -1: not given
  std::string lane;            // name of the stream or thread, which runs one op after another: "compute", "pp-comm"
  double begin = 0, time = 0;  // begin and duration in seconds
};

// Collects the rows (ops) of one measured run. A send and the matching receive on a neighbouring stage become one
// transfer, and so do collectives on the ranks that take part in them. Which ranks take part is known for ops with
// Megatron-LM's names.
class RunRows {
 public:
  // Adds a row (an op of a log); throws Error for values that are impossible in a run.
  void add(const RunRow& row);
  bool empty() const { return run_.operations.empty(); }
  MeasuredRun take();  // throws Error if rows are missing: a stage without rows, or fewer rows than ranks

 private:
  void check_ranks() const;
  // Makes each forward or backward pass of a stage wait for the receive of its input, paired in order of time. Nothing
  // is tied on a stage where the numbers of receives and of passes differ.
  void tie_receives();
  std::vector<std::string> sequences() const;
  std::int64_t group_of(const RunRow& row, const std::string& sequence);

  MeasuredRun run_;
  std::vector<RunRow> rows_;  // for each operation of run_, its row
  std::map<std::string, std::int64_t> groups_;
  std::map<std::string, std::int32_t> lanes_;
  std::map<std::int64_t, std::int32_t> workers_;  // for each data rank, its index in MeasuredRun::workers
};

// The lane in which an op runs where a log does not say it. There are three: transfers between stages, other transfers,
// and everything else.
std::string lane_of_op(std::string_view op);

// Reads rows from the text of a CSV file with a header, and adds them to `rows`. Throws Error "path:line: what, and
// what to do".
void read_run_csv(const std::string& path, std::string_view text, RunRows& rows);

}  // namespace orrery
