#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/whatif/step_graph.h"

namespace orrery {

// A question about a measured run: how long its steps had been if something had been otherwise.
struct WhatifQuestion {
  std::string without_rank, without_op;       // name of a worker that works as all do, and of an op that takes no time
  std::optional<std::int32_t> without_stage;  // a stage that works as all do
  double network = 1, compute = 1;            // how many times as fast transfers and other ops are
  bool even_stages = false;                   // whether stages take equal time for an op, in the mean

  bool asks() const;
};

struct Slowdown {
  std::string name;
  double slowdown = 1;
};

// The time of transfers of one kind, a step and rank: moving data, and waiting for the last rank to enter.
struct TransferSplit {
  std::string op;
  double moving = 0, waiting = 0;
};

// Answers about a run, as means over its steps. Even work is that of a run in which equal operations take equal time:
// compute the mean over all ranks and steps, transfers the median (Lin et al. 2025, Understanding Stragglers in Large
// Model Training Using What-if Analysis, section 3). A slowdown is the time of a step in which one kind of op, one
// worker or one stage takes its measured times and everything else is even, over that of a step in which all is even.
struct WhatifAnswer {
  std::int64_t steps = 0;
  double measured = 0;      // seconds of a step
  double replayed = 0;      // the same from the graph of its operations, with the gaps between them
  double replay_error = 0;  // mean over steps of |replayed / measured - 1|
  double without_gaps = 0;  // operations begin as soon as what they wait for has ended
  double even = 0;          // without gaps, and all work even
  double asked = 0;         // replayed with what the question changes
  double clock_shift = 0;   // largest error of a worker's clock that was repaired
  std::vector<Slowdown> by_op, by_worker, by_stage;
  std::vector<TransferSplit> transfers;
  std::vector<std::vector<double>> work;  // [worker][stage]: time of compute over that of even compute
};

// Throws Error "what" for a question about a rank, stage or op that the run does not have.
WhatifAnswer answer(MeasuredRun run, const WhatifQuestion& question);

std::string whatif_json(const WhatifAnswer& answer, const WhatifQuestion& question);

}  // namespace orrery
