#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/whatif/measured_run.h"

namespace orrery {

// A node in the graph of a measured step: an operation of one rank, or a transfer with all its ranks. A transfer begins
// when the last of its ranks has entered it, so that `time` does not include waiting for ranks.
struct RunNode {
  std::uint32_t op = 0, pool = 0;
  std::int32_t worker = 0, stage = 0;  // worker and stage of the operation, or of a transfer's first rank
  double begin = 0, time = 0;
  // seconds from the end of the last node that this one waits for to this node's begin, mostly for the launch
  double gap = 0;
  double waited = 0;  // seconds for which a transfer's ranks waited for the last of them, summed over ranks
  std::vector<std::uint32_t> after;  // indices of the nodes that this one waits for, all lower than its own
  // for a transfer, (worker, stage) of each rank that takes part; empty for an operation of one rank
  std::vector<std::pair<std::int32_t, std::int32_t>> ranks;
};

// The nodes of one step in an order in which every node comes after those that it waits for.
struct StepGraph {
  std::int64_t step = 0;
  double begin = 0, time = 0;  // measured begin and duration of the step
  std::vector<RunNode> nodes;
};

// Builds a graph for each step of a run that shows what each operation waits for. A trace does not record this, so it
// is inferred. An operation waits for the previous one in its lane; in each other lane of its rank, for the last one
// that had ended when it began; and for the one that it is known to need. The clocks of two lanes are taken to differ
// by up to 0.1 ms.
std::vector<StepGraph> step_graphs(const MeasuredRun& run);

// Returns the step time if each node takes time(node) seconds and begins gap(node) seconds after the last node that it
// waits for.
double replayed(const StepGraph& graph, const std::function<double(const RunNode&)>& time,
                const std::function<double(const RunNode&)>& gap);

}  // namespace orrery
