#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "exec/host/execute.h"
#include "models/run/progress_ring.h"

namespace orrery {

// What programs that execute ranks have in common: their arguments, what follows from a spec, and how they end
// (models/trace/trace_file.h says what they are asked and what they leave behind).
struct RankOptions {
  std::string spec, out, text;
  std::vector<std::string> overrides;
  std::int64_t steps = 1;
  std::int64_t first_step = 0;
  std::string snapshots;  // folder that they go to and, where a run goes on, come from
  double hang_timeout = 0;
  bool turns = false;  // where a program has ranks take turns
};

// name: of the program. Throws Error for bad usage; prints help, and ends the process then.
RankOptions parse_rank_options(int argc, char** argv, const std::string& name);

Training training_of(const Spec& spec);
// Of this machine, by which ranks of one node are known.
std::string host_name();
// built_in: the text that is used where the options name no other.
Text text_of(const RankOptions& options, const Spec& spec, std::string_view built_in);

// Tells a rank's progress file of every task, as a watcher. step: of the run, kept by who runs it.
Watcher watcher_of(const Rank& rank, ProgressRing& ring, const std::int64_t& step);

// Notes a failure where the parent looks for it, prints its line, and ends the process at once: a rank that fails alone
// must not wait for the others. ring may be null.
[[noreturn]] void give_up(ProgressRing* ring, const std::string& name, int code, const std::string& line);
[[noreturn]] void give_up(ProgressRing* ring, const std::string& name, const std::exception& error);
int exit_code_of(const std::exception& error);

}  // namespace orrery
