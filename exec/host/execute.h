#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "exec/host/device.h"
#include "models/trace/trace_file.h"

namespace orrery {

// The results of one rank's run of some steps.
struct Execution {
  std::vector<MeasuredStep> steps;
  std::vector<double> losses;  // by step: mean over this rank's tokens; empty where the plan has no loss
  MeasuredMemory memory;
};

// Throws Error, naming the key, for a spec that ranks of the given kind ("CPU", "GPU") cannot execute.
void check_executable(const Spec& spec, std::string_view ranks = "CPU");

struct ExecuteOptions {
  std::int64_t steps = 1;
  std::int64_t first_step = 0;  // first step to run; the run ends after step `steps` - 1
  Training training;
  Watcher watcher;                                 // may be empty
  std::function<void(std::int64_t step)> on_step;  // called before each step
  // Called before each step, with the losses of the steps that this run has made so far.
  std::function<void(std::int64_t step, Buffers&, const std::vector<double>& losses)> on_begin;
  // Called before the first update of a step, when all gradients are complete, and after the last step, when all
  // weights are. Sees every buffer through `Buffers`.
  std::function<void(std::int64_t step, const Buffers&)> on_gradients;
  std::function<void(const Buffers&)> on_end;
  std::function<void(const RoutedToken&)> on_routing;  // called for each token that a router sends to experts
};

// Executes a rank's plan: for each task, in issue order, takes and returns the task's buffers, hands the task to a
// lane, and waits where the plan says that the host waits. It decides nothing that the plan leaves open.
Execution execute(const Rank& rank, RankDevice& device, const Text& text, const ExecuteOptions& options);

}  // namespace orrery
