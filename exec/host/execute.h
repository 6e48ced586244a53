#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "exec/host/device.h"
#include "models/trace/trace_file.h"

namespace orrery {

// What a rank's run of some steps left behind.
struct Execution {
  std::vector<MeasuredStep> steps;
  std::vector<double> losses;  // by step: mean over this rank's tokens; empty where the plan has no loss
  MeasuredMemory memory;
};

// Throws Error for a spec that ranks of either kind ("CPU", "GPU") cannot execute, by its key.
void check_executable(const Spec& spec, std::string_view ranks = "CPU");

struct ExecuteOptions {
  std::int64_t steps = 1;
  std::int64_t first_step = 0;  // of them, the one to begin with
  Training training;
  Watcher watcher;                                 // may be empty
  std::function<void(std::int64_t step)> on_step;  // before each step
  // Before each step, with the losses of those that this run has made before.
  std::function<void(std::int64_t step, Buffers&, const std::vector<double>& losses)> on_begin;
  // Called before the first update of a step, when all gradients are complete, and after the last step, when all
  // weights are. Sees every buffer through `Buffers`.
  std::function<void(std::int64_t step, const Buffers&)> on_gradients;
  std::function<void(const Buffers&)> on_end;
  std::function<void(const RoutedToken&)> on_routing;  // each token that a router sends to experts
};

// Runs a rank's plan for real: per task, in issue order, takes and returns its buffers, hands it to its lane, waits
// where the plan says the host does. It decides nothing.
Execution execute(const Rank& rank, RankDevice& device, const Text& text, const ExecuteOptions& options);

}  // namespace orrery
