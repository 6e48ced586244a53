#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/whatif/measured_run.h"

namespace orrery {

// A part of a step of a measured run: an operation of one rank, or a transfer with all its ranks. A transfer
// begins when the last of its ranks has entered it, so its `time` is that of moving alone.
struct RunNode {
  std::uint32_t op = 0, pool = 0;
  std::int32_t worker = 0, stage = 0;  // of the operation; of a transfer, those of its first rank
  double begin = 0, time = 0;
  double gap = 0;     // seconds from the end of the last node that it waits for to `begin`: the host's launch
  double waited = 0;  // sum over a transfer's ranks of what they waited for the last of them
  std::vector<std::uint32_t> after;  // nodes that this one waits for, all before it in the step's order
  std::vector<std::pair<std::int32_t, std::int32_t>> ranks;  // workers and stages of a transfer; empty otherwise
};

// The nodes of one step in an order in which every node comes after those that it waits for.
struct StepGraph {
  std::int64_t step = 0;
  double begin = 0, time = 0;  // the step's own, as measured
  std::vector<RunNode> nodes;
};

// Finds out what each operation of a run waits for. A trace does not say it; what it shows is that an operation waits
// for the one before it in its lane, for the last one of each other lane of its rank that had ended when it began, and
// for what it is known to need. Clocks of lanes that differ by 0.1 ms do no harm.
std::vector<StepGraph> step_graphs(const MeasuredRun& run);

// Returns how long a step takes if each node takes time(node) seconds and begins gap(node) seconds after what it waits
// for.
double replayed(const StepGraph& graph, const std::function<double(const RunNode&)>& time,
                const std::function<double(const RunNode&)>& gap);

}  // namespace orrery
