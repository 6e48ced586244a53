#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/whatif/divergence.h"
#include "sim/whatif/step_graph.h"

namespace orrery {

// A question about a measured run: how long its steps would have been under other conditions.
struct WhatifQuestion {
  // names of a worker to replay with even times (equal times for equal work), and of an op to replay with no time
  std::string without_rank, without_op;
  std::optional<std::int32_t> without_stage;  // stage to replay with even times (equal times for equal work)
  double network = 1, compute = 1;            // factors by which transfers, and all other ops, are faster
  bool even_stages = false;                   // whether all stages are to take the same mean time for an op
  // names of two ranks of which the first operation is sought where they part; empty: the slowest and the fastest
  std::string between_first, between_second;

  bool asks() const;
};

struct Slowdown {
  std::string name;
  double slowdown = 1;
};

// The time of transfers of one kind, per step and rank: moving data, and waiting for the last rank to enter.
struct TransferSplit {
  std::string op;
  double moving = 0, waiting = 0;
};

// Answers about a measured run, as means over its steps. A step is even if operations that do equal work take equal
// time: for compute the mean over all ranks and steps, for transfers the median (Lin et al. 2025, Understanding
// Stragglers in Large Model Training Using What-if Analysis, section 3). A slowdown compares two step times: one in
// which a single kind of op, worker or stage takes its measured times and everything else is even, divided by the one
// in which everything is even.
struct WhatifAnswer {
  std::int64_t steps = 0;
  double measured = 0;          // measured step time in seconds
  double replayed = 0;          // step time when replayed: operations begin a usual gap after those they wait for
  double replay_error = 0;      // mean over steps of |replayed / measured - 1|
  double without_gaps = 0;      // step time if operations began as soon as those that they wait for have ended
  double even = 0;              // step time without gaps, where operations that do equal work take equal time
  double asked = 0;             // step time replayed under the assumptions of the question
  double clock_shift = 0;       // largest error found in a worker's clock, in seconds; it is corrected
  std::vector<Slowdown> by_op;  // slowdowns of the 50 ops that take the most time
  std::vector<Slowdown> by_worker, by_stage;
  std::vector<TransferSplit> transfers;
  std::vector<std::string> workers;       // names of the workers, in the order of `work`
  std::vector<std::vector<double>> work;  // for each worker and stage, compute time / mean compute time for equal work
  std::vector<std::string> remarks;       // sentences about what the run's files lack
  // where two ranks part first; nullopt if they stay together, or if there is one rank
  std::optional<Divergence> divergence;
  std::string between_first, between_second;  // names of those two ranks; "" if there is one rank
};

// Throws Error for a run without operations, for a step that takes no time, and for a question about a rank, stage or
// op that the run does not have.
WhatifAnswer answer(MeasuredRun run, const WhatifQuestion& question);

// roofline: what stands under that key (sim/calibrate/roofline.h); null: nothing.
std::string whatif_json(const WhatifAnswer& answer, const WhatifQuestion& question,
                        const nlohmann::ordered_json& roofline = nullptr);

}  // namespace orrery
