#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "exec/host/device.h"
#include "models/trace/trace_file.h"

namespace orrery {

// The results of executing some steps on one rank.
struct Execution {
  std::vector<MeasuredStep> steps;    // measurements of the steps whose tasks were timed
  std::vector<Picoseconds> unmarked;  // length of each step whose tasks were not timed, from the end of the step before
  // The mean loss over this rank's tokens in each step; empty if the plan computes no loss.
  std::vector<double> losses;
  // The tokens that the last step generated, on ranks of the last pipeline stage; empty if the plan generates no text.
  std::vector<GeneratedSequence> generated;
  std::vector<KeptLogits> logits;    // the logits from which these tokens were chosen (ExecuteOptions::keep_logits)
  std::int64_t skipped_updates = 0;  // fp16: updates that were not made because a gradient was infinite
  MeasuredMemory memory;
};

// Throws Error, naming a key of the spec, for a spec that CPU or GPU ranks cannot execute. ranks: "CPU" or "GPU".
void check_executable(const Spec& spec, std::string_view ranks = "CPU");

struct ExecuteOptions {
  std::int64_t steps = 1;
  std::int64_t first_step = 0;  // index of the first step to run; the last one is `steps` - 1
  Training training;
  Watcher watcher;                                 // called when tasks begin and end; may be empty
  std::function<void(std::int64_t step)> on_step;  // called before each training step
  // A function that is called before each step. losses: the losses of the steps that this run has made so far.
  std::function<void(std::int64_t step, Buffers&, const std::vector<double>& losses)> on_begin;
  // on_gradients is called before a step's first optimizer update, when all gradients are complete; on_end is called
  // after the last step, when all weights are updated. Both can read every buffer.
  std::function<void(std::int64_t step, const Buffers&)> on_gradients;
  std::function<void(const Buffers&)> on_end;
  PromptReader prompt;       // the prompts of a generation; empty: windows of the text
  bool keep_logits = false;  // whether a generation's logits are returned
  // The Execution::generated of another run of the same rank, with whose tokens the text goes on instead of those that
  // are chosen; empty: with these.
  std::vector<GeneratedSequence> follow;
  // A function that is called for each token for which a router has chosen experts.
  std::function<void(const RoutedToken&)> on_routing;
};

// Executes a rank's plan. For each task, in issue order, it allocates and frees the task's buffers, submits the task to
// a lane (a queue of tasks), and waits for the task's dependencies if the plan says that the host waits.
Execution execute(const Rank& rank, RankDevice& device, const Text& text, const ExecuteOptions& options);

}  // namespace orrery
