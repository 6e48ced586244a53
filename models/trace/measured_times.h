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

// The kernel that a task runs, and the task's size. Measured times of one kind of kernel are interpolated over its
// sizes.
struct WorkShape {
  std::string kind;  // kind of op: "gemm/input_gradient fp32", "norm/rms/backward fp32"
  // sizes that the time depends on, such as (m, n, k) or (rows, columns); every task of a kind has the same number of
  // sizes
  std::vector<double> sizes;
  double amount = 0;  // number of FLOPs for products and attention, of bytes for other kernels (cost_of)
};
WorkShape shape_of(const Work& work, Bytes width);

// The measured time of one op of one shape. spread: interquartile range of the repetitions divided by their median.
struct OpSample {
  std::vector<double> sizes;
  double amount = 0;
  Seconds seconds = 0;
  double spread = 0;
  std::int64_t count = 0;  // number of measured repetitions
};
struct OpTable {
  std::string kind;
  std::vector<OpSample> samples;  // samples in the order of their sizes
};

// A measured transfer: its size, and its time from the moment when the last of its ranks had entered it. bytes: size of
// a message; for a collective, the larger of one rank's input and output, as NCCL counts sizes.
struct TransferSample {
  Bytes bytes = 0;
  Seconds seconds = 0;
  double spread = 0;
  std::int64_t count = 0;
};
struct TransferTable {
  std::string kind;  // kind of transfer: "all_reduce", "message"
  std::int64_t ranks = 2;
  std::vector<TransferSample> samples;  // samples in the order of their bytes
  std::int64_t nodes = 0;               // number of nodes that the ranks lie on, evenly; 0: not known, or irrelevant
};

// The times of single ops and transfers on one machine, and of the gaps between them. They are measured under the load
// of a step (all ranks at the same time, all threads of a rank), but do not depend on any plan.
struct MeasuredTimes {
  std::vector<OpTable> ops;              // one table for each kind of op
  std::vector<TransferTable> transfers;  // one table for each kind of transfer and number of ranks
  Seconds issue = 0;                     // time that the host takes to issue a task
  Seconds gap = 0;                       // time between two tasks of the compute lane
  // time from the end of the tasks that a transfer waited for until its rank has entered the transfer
  Seconds transfer_start = 0;
  // time from the end of a transfer until a task that waited for it on the compute lane runs
  Seconds wake = 0;
  Seconds step = 0;              // time between two steps, in which nothing runs
  double compute_slowdown = 1;   // factor by which compute is slower while a transfer of its rank runs
  double transfer_slowdown = 1;  // factor by which a transfer is slower while its rank computes
  double beside_slowdown = 1;    // factor by which compute is slower while the rank's host copies or updates
  double copy_slowdown = 1;      // factor by which the host's copies and updates are slower while its rank computes
  // factor by which compute is slower while the device sums the arrays that a collective made of memory copies has
  // received
  double sum_slowdown = 1;

  bool empty() const { return ops.empty() && transfers.empty(); }
};

// A formula for the times of one kind of kernel, which is right up to a factor; the factor is found from measured
// samples. of_sample: returns the time that the formula gives for a sample, from its sizes and amount (WorkShape),
// measured alone. of_task: the time that the formula gives for the task whose time is wanted, as it is in the plan,
// where it may be cut into pieces or have dropout.
struct Law {
  // the formula, which gives the time of a measured sample from its sizes and its amount (FLOPs or bytes); not set: the
  // time is proportional to the amount
  std::function<Seconds(const std::vector<double>& sizes, double amount)> of_sample;
  Seconds of_task = 0;
};

// Returns the time of a task, from the samples of its kind: the formula's time for the task (the amount itself if no
// formula is given) times the ratio of measured time to the formula's time at the task's sizes. log(ratio) is a plane
// over the logs of the sizes, fitted with weights 1 / distance^4 (moving least squares: Lancaster and Salkauskas,
// Mathematics of Computation 37, 1981), so it is exact at every sample and, without a formula, follows any power law.
// For sizes outside the box of the samples, the ratio at the edge of the box is taken, and the ratio is never lower
// than that of the best sample or higher than that of the worst, because a rate that was not measured is not promised.
// nullopt if the kind was not measured, or was measured by a version whose samples had other sizes.
std::optional<Seconds> measured_time(const MeasuredTimes& times, const Work& work, Bytes width, const Law& law = {});
// Returns the measured time of a task whose sizes the samples cover; nullopt otherwise.
std::optional<Seconds> covered_time(const MeasuredTimes& times, const Work& work, Bytes width, const Law& law = {});
Seconds interpolate(const OpTable& table, const WorkShape& shape, const Law& law = {});

// Returns the table of a kind of transfer for this number of ranks and nodes; else the table of this number of ranks
// whose number of nodes is not known; else nullptr.
const TransferTable* find_transfers(const MeasuredTimes& times, std::string_view kind, std::int64_t ranks,
                                    std::int64_t nodes = 0);

// Returns whether samples are near enough to a size: from half the smallest sample to twice the largest. For sizes
// outside this range formulas, if there are any, are more accurate.
bool covers(const OpTable& table, const WorkShape& shape);
bool covers(const TransferTable& table, Bytes bytes);

// Returns the measured time of a transfer, interpolated linearly between samples. Above the largest sample the
// bandwidth between the last two samples is used, below the smallest sample its time. nullopt if this kind was not
// measured with this number of ranks.
std::optional<Seconds> measured_transfer(const MeasuredTimes& times, std::string_view kind, std::int64_t ranks,
                                         Bytes bytes);
Seconds interpolate(const TransferTable& table, Bytes bytes);

}  // namespace orrery
