#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "models/base/units.h"
#include "models/plan/plan.h"
#include "models/trace/conditions.h"

namespace orrery {

// The command line of a program that executes ranks (orrery-rank), and the files that it writes for `orrery`:
//
//   orrery-rank --spec FILE [--set KEY=VALUE]... --out FOLDER --steps K [--hang-timeout S] [--mark-every N]
//
// Every rank makes the same plan from FILE and the overrides. FOLDER exists. At the start, before it joins the other
// ranks, a rank creates its progress file there (progress_file(FOLDER, rank), progress_ring.h) and from then on notes
// every task that it enters and leaves. When its steps are done it writes its results (rank_file(FOLDER, rank),
// write_rank_run()), and after that notes that it has finished. It dies with the process that started it (prctl(2),
// PR_SET_PDEATHSIG). A rank that fails notes its error message and its exit status in the progress file. It prints
// nothing on stdout. --hang-timeout is given if no other process watches the ranks (under the user's own mpirun or
// srun): the ranks then watch each other (exec/program/watch.h).

// The times of one task, in picoseconds on the rank's clock. issued: when the host had launched it; entered: when its
// dependencies had ended and its lane was free; ended: when it had ended. For a transfer `entered` is when this rank
// was ready; the time when the last member was ready is found by comparing ranks.
struct MeasuredSpan {
  Picoseconds issued = 0, entered = 0, ended = 0;
};

// One step of a rank. All steps use one clock; `begin` is when the host began with the first task, `end` when the last
// task had ended.
struct MeasuredStep {
  Picoseconds begin = 0, end = 0;
  std::vector<MeasuredSpan> spans;  // times of the tasks of this rank's own plan, in issue order
  // sizes known only at run time (numbers of tokens that each expert gets), for all frames (blocks' buffers) of the
  // rank one after another
  std::vector<std::int64_t> sizes;
};

// The peak memory use of a rank, from its own allocator, over all steps.
struct MeasuredMemory {
  Bytes capacity = 0;         // bytes of memory of the device, or of the machine that CPU ranks share
  Bytes first_step_peak = 0;  // greatest number of bytes allocated in the first step
  Bytes peak = 0;             // greatest number of bytes allocated in any step
  Bytes peak_reserved = 0;    // greatest number of bytes that the caching allocator held
  Bytes peak_device = 0;  // greatest number of bytes in use as the driver reports them; for a CPU rank: peak_reserved
  // for each memory tier beyond the device, the greatest number of bytes of the tensors offloaded to it; if none are
  // offloaded to the host, the host's entry is the largest resident memory of the process
  TierBytes tier_peak{};
  TaskId peak_task = kNone;  // task of this rank's own plan at the peak; kNone: the peak was before the first task
  std::array<Bytes, kCategories> at_peak{};  // bytes of each Category at the peak; they sum to `peak`
};

// A comparison, on one rank, of two rows of logits, of which it has `columns` columns: those of a model as it is
// (wide), and of the same model with quantised weights or cache (narrow), for the token at `position` of a sequence's
// text. distance, furthest: the sum and the largest of the differences' sizes. wide_sum, narrow_sum: the sums of
// exponentials relative to the largest logit; weighted: the sum of the differences (wide - narrow), each times its
// exponential of wide_sum.
struct LogitRow {
  std::int64_t sequence = 0, position = 0, columns = 0;
  double distance = 0, furthest = 0;
  double wide_largest = 0, wide_sum = 0, narrow_largest = 0, narrow_sum = 0, weighted = 0;
  bool same_token = false;
};

// The results of one rank: everything that it measured, and the machine on which it ran.
struct RankRun {
  std::string source = "measured";
  std::string plan_hash;  // hash of the folded plan (one slot per class of equal ranks)
  std::int64_t rank = 0, ranks = 1;
  std::string device;               // processor: "AMD EPYC 9554, 1 thread", "NVIDIA H100 80GB HBM3"
  std::string library;              // library that runs collectives whose algorithm is `library`: "Open MPI 4.1.4"
  std::string link;                 // medium between ranks of one host: "shared memory", "nvlink"
  std::string host;                 // the node's name
  std::string note;                 // remark about the whole run, printed in the report
  std::vector<MeasuredStep> steps;  // the steps whose tasks were timed: all, or each k-th (--mark-every K)
  // durations of the steps whose tasks were not timed, each from the end of the step before, on the host's clock
  std::vector<Picoseconds> unmarked;
  std::vector<double> losses;  // loss of each step, the mean over this rank's tokens; empty if the plan has no loss
  // generation: for each sequence of the rank, up to a limit, its number in the run and the first tokens of its text
  std::map<std::int64_t, std::vector<std::int64_t>> texts;
  std::vector<LogitRow> logits;  // generation with quantised weights or cache: its logits beside the wide model's
  MeasuredMemory memory;
  Conditions conditions;         // clocks and power of the rank's GPU during the steps; not known for a CPU rank
  Picoseconds clock_offset = 0;  // offset to add to this rank's times to get rank 0's
  Picoseconds clock_uncertainty = 0;
};

// Returns the name of the file with a rank's results: "folder/rank_3.run".
std::string rank_file(const std::string& folder, std::int64_t rank);
// Returns the name of the file with a rank's states after `step` steps, from which a run can resume:
// "folder/snapshot_3.10" for rank 3 after 10 steps.
std::string snapshot_file(const std::string& folder, std::int64_t rank, std::int64_t step);

// These functions write and read a rank's results. The file format: a line of JSON (schema orrery.rank/1), then 64-bit
// little-endian words: for every step its begin, end, spans and sizes; then the losses as doubles. Two million spans a
// step are read and written at the speed of the disk. The file appears under its name only when it is complete
// (output_file.h). Reading throws Error "file: what" for a file that is cut short, is longer than its header says, has
// another schema, or has times that decrease.
void write_rank_run(const std::string& path, const RankRun& run);
RankRun read_rank_run(const std::string& path);
// Reads a rank's results from a stream. size: number of bytes of the complete file.
RankRun parse_rank_run(std::istream& in, std::uint64_t size, const std::string& path);

}  // namespace orrery
