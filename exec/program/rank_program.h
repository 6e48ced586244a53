#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "exec/host/execute.h"
#include "models/run/progress_ring.h"

namespace orrery {

// This header has functions that the rank programs for CPUs and GPUs share: parsing arguments, settings that follow
// from a spec, and ending the program (models/trace/trace_file.h describes the arguments and the files they write).
struct RankOptions {
  std::string spec, out, text;
  std::vector<std::string> overrides;
  std::int64_t steps = 1;
  std::int64_t first_step = 0;
  std::string snapshots;  // path of the folder for snapshots; a resumed run also reads them there
  double hang_timeout = 0;
  // one step out of this many has its tasks timed; only orrery-rank-cuda times fewer than all steps
  std::int64_t mark_every = 1;
  // whether ranks run one after the other on one GPU; only orrery-rank-cuda supports this
  bool turns = false;
};

// Parses a rank program's arguments; name: the program's name. Throws Error for bad usage; with --help, prints help and
// ends the process.
RankOptions parse_rank_options(int argc, char** argv, const std::string& name);

Training training_of(const Spec& spec);
// Returns the name of this machine, which is equal for ranks of the same node.
std::string host_name();
// Returns the training text: the file that the options name, else `built_in`.
Text text_of(const RankOptions& options, const Spec& spec, std::string_view built_in);

// Returns a function that records the begin and the end of every task in the rank's progress file. step: number of the
// current step, which the caller keeps up to date.
Watcher watcher_of(const Rank& rank, ProgressRing& ring, const std::int64_t& step);

// Records a failure in the progress file `ring`, which the launcher reads (null if the file is not open), prints
// `line`, and ends the process immediately, without waiting for other ranks.
[[noreturn]] void give_up(ProgressRing* ring, const std::string& name, int code, const std::string& line);
[[noreturn]] void give_up(ProgressRing* ring, const std::string& name, const std::exception& error);
int exit_code_of(const std::exception& error);

}  // namespace orrery
