#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/whatif/measured_run.h"

namespace orrery {

// A row of a log that names what the program did: an op of a micro-batch, on a stage of a data rank. Such logs come
// from programs that time their own ops (forward, backward, sends, collectives) rather than their kernels.
struct RunRow {
  std::int64_t worker = 0, stage = 0, step = 0;
  std::string op;
  std::int64_t chunk = -1, sequence = -1;  // number of the model chunk, and of the op among those like it; -1: not said
  std::string lane;                        // what runs one after another: "compute", "pp-comm"
  double begin = 0, time = 0;              // seconds
};

// Collects the rows of one run. Sends and receives of neighbouring stages are one transfer, and so are collectives of
// the ranks that take part in them; which these are is known for the names of Megatron's ops.
class RunRows {
 public:
  // Adds a row; throws Error "what" for numbers that no run has.
  void add(const RunRow& row);
  bool empty() const { return run_.operations.empty(); }
  MeasuredRun take();

 private:
  // Ties what a stage receives to the passes that read it, where there are as many of the former as of the latter.
  void tie_receives();
  std::int64_t group_of(const RunRow& row, std::int64_t sequence);

  MeasuredRun run_;
  std::vector<std::pair<RunRow, std::int64_t>> rows_;  // [operation]: its row, and its number among those like it
  std::map<std::string, std::int64_t> groups_;
  std::map<std::string, std::int32_t> lanes_;
  std::map<std::string, std::int64_t> seen_;      // number of ops of one name on a rank in a step so far
  std::map<std::int64_t, std::int32_t> workers_;  // index of a data rank
};

// The lane that an op runs in where a log does not say it: transfers between stages, other transfers and everything
// else have one each.
std::string lane_of_op(std::string_view op);

// Reads rows from the text of a CSV file with a header; adds them. Throws Error "path:line: what, and what to do".
void read_run_csv(const std::string& path, std::string_view text, RunRows& rows);

}  // namespace orrery
