#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.h"
#include "models/plan/op.h"

namespace orrery {

// The kernel that a task runs, and the task's size: measured times of one kind are interpolated over its sizes.
struct WorkShape {
  std::string kind;  // "gemm/input_gradient fp32", "norm/rms/backward fp32"
  // Sizes that the time depends on: (m, n, k), (rows, columns); equally many for all tasks of a kind
  std::vector<double> sizes;
  double amount = 0;  // flops of products and attention, bytes of other kernels (cost_of)
};
WorkShape shape_of(const Work& work, Bytes width);

// The measured time of one op of one shape. spread: quartile distance of the repetitions over their median.
struct OpSample {
  std::vector<double> sizes;
  double amount = 0;
  Seconds seconds = 0;
  double spread = 0;
  std::int64_t count = 0;  // number of repetitions
};
struct OpTable {
  std::string kind;
  std::vector<OpSample> samples;  // samples in the order of their sizes
};

// The measured time of a transfer from the moment when the last of its ranks had entered it. bytes: the larger of input
// and output of one rank, as NCCL counts a collective's size; or the size of a message.
struct TransferSample {
  Bytes bytes = 0;
  Seconds seconds = 0;
  double spread = 0;
  std::int64_t count = 0;
};
struct TransferTable {
  std::string kind;  // "all_reduce", "message"
  std::int64_t ranks = 2;
  std::vector<TransferSample> samples;  // samples in the order of their bytes
  std::int64_t nodes = 0;               // nodes that the ranks lie on, evenly; 0: not known, or irrelevant
};

// Times of single ops and transfers on one machine, and of the gaps between them. They are measured under the load of a
// step (all ranks at once, all threads of a rank), but do not depend on any plan.
struct MeasuredTimes {
  std::vector<OpTable> ops;              // tables by kind
  std::vector<TransferTable> transfers;  // tables by kind and ranks
  Seconds issue = 0;                     // time of the host, per task
  Seconds gap = 0;                       // gap between two tasks of the compute lane
  // Time from the end of the tasks that a transfer waited for until the transfer has entered
  Seconds transfer_start = 0;
  // Time from the end of a transfer until a task that waited for it on the compute lane runs
  Seconds wake = 0;
  Seconds step = 0;              // time between two steps in which nothing runs
  double compute_slowdown = 1;   // slow-down of compute while a transfer of its rank runs
  double transfer_slowdown = 1;  // slow-down of a transfer while its rank computes
  double beside_slowdown = 1;    // slow-down of compute while the rank's host copies data or updates weights
  double copy_slowdown = 1;      // slow-down of such a copy or update while the rank computes
  double sum_slowdown = 1;       // slow-down of compute while the device adds up arrays for a collective of moves

  bool empty() const { return ops.empty() && transfers.empty(); }
};

// The times that a formula expects, up to a factor that samples tell: of a sample, from its sizes and amount
// (WorkShape), as it was measured alone; and of the task to be timed, as a plan has it, in pieces or with dropout.
struct Law {
  std::function<Seconds(const std::vector<double>& sizes, double amount)> of_sample;  // none: the amount
  Seconds of_task = 0;
};

// The time of a task, from the samples of its kind: the law's time, which is the amount itself where no law is given,
// times the ratio of measured time to the law's at its sizes. log(ratio) is a plane over the logs of the sizes, fitted
// with weights 1 / distance^4 (moving least squares: Lancaster and Salkauskas, Mathematics of Computation 37, 1981), so
// it is exact at every sample and, without a law, follows any power law. Beyond the samples' box the ratio is taken at
// the box's edge, and no ratio is better than the best sample's, or worse than the worst's: a rate that was not seen is
// not promised. nullopt where the kind was not measured, or by a version whose samples had other sizes.
std::optional<Seconds> measured_time(const MeasuredTimes& times, const Work& work, Bytes width, const Law& law = {});
// The measured time of a task whose sizes the samples cover; nullopt otherwise.
std::optional<Seconds> covered_time(const MeasuredTimes& times, const Work& work, Bytes width, const Law& law = {});
Seconds interpolate(const OpTable& table, const WorkShape& shape, const Law& law = {});

// The table of a kind over so many ranks on so many nodes; else the table without a number of nodes; else nullptr.
const TransferTable* find_transfers(const MeasuredTimes& times, std::string_view kind, std::int64_t ranks,
                                    std::int64_t nodes = 0);

// Whether samples are close enough to a size: from half the smallest sample to twice the largest. Beyond that formulas,
// if there are any, are more accurate.
bool covers(const OpTable& table, const WorkShape& shape);
bool covers(const TransferTable& table, Bytes bytes);

// The measured time of a transfer, interpolated linearly between samples; above them with the bandwidth of the last
// pair, below the smallest sample the time of that sample. nullopt if this kind was not measured with so many ranks.
std::optional<Seconds> measured_transfer(const MeasuredTimes& times, std::string_view kind, std::int64_t ranks,
                                         Bytes bytes);
Seconds interpolate(const TransferTable& table, Bytes bytes);

}  // namespace orrery
