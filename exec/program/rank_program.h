#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "exec/host/execute.h"
#include "models/run/progress_ring.h"

namespace orrery {

// Functions that the programs that execute ranks share: their arguments, the settings that follow from a spec, and how
// the programs end (models/trace/trace_file.h describes the arguments and the files they write).
struct RankOptions {
  std::string spec, out, text;
  std::vector<std::string> overrides;
  std::int64_t steps = 1;
  std::int64_t first_step = 0;
  std::string snapshots;  // folder for snapshots, which a resumed run also reads from
  double hang_timeout = 0;
  bool turns = false;  // whether the ranks run one after the other, in programs that can do this
};

// name: the program's name. Throws Error for bad usage; with --help, prints help and ends the process.
RankOptions parse_rank_options(int argc, char** argv, const std::string& name);

Training training_of(const Spec& spec);
// This machine's host name, by which the ranks of one node are recognised.
std::string host_name();
// built_in: the text to use where the options name no other.
Text text_of(const RankOptions& options, const Spec& spec, std::string_view built_in);

// A watcher that notes every task in the rank's progress file. step: number of the current step, which the caller
// keeps.
Watcher watcher_of(const Rank& rank, ProgressRing& ring, const std::int64_t& step);

// Notes a failure in the progress file that the launcher reads, prints `line`, and ends the process at once: a rank
// that fails alone must not wait for the other ranks. ring may be null.
[[noreturn]] void give_up(ProgressRing* ring, const std::string& name, int code, const std::string& line);
[[noreturn]] void give_up(ProgressRing* ring, const std::string& name, const std::exception& error);
int exit_code_of(const std::exception& error);

}  // namespace orrery
