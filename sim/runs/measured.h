#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/spec.h"
#include "models/trace/trace.h"
#include "models/trace/trace_file.h"
#include "sim/report/report.h"

namespace orrery {

// The files of all ranks of a run, in order. unfolded: the plan of all ranks; hash: of its folded form. Throws Error
// for a file that is broken, of another plan, or of other steps than its neighbours. A server that the folder's file of
// lost ranks names left none; another of its chain, which did the same, stands for it.
std::vector<RankRun> read_runs(const std::string& folder, const Plan& unfolded, const std::string& hash);

// Step k on one clock, rank 0's. It lasts from the moment when the last rank had ended the step before to the one when
// the last has ended this (the first from the first rank's begin), so that steps add up to the run; what a rank did
// earlier is drawn in to 0. A transfer is matched when its last end has entered, clamped to [entered, ended] of each
// end, since clocks agree only so far.
Trace measured_trace(const Plan& unfolded, std::span<const RankRun> runs, std::size_t step);

// The times of every step, as measured_trace() counts them.
std::vector<Picoseconds> step_times(std::span<const RankRun> runs);

// The step of median time, without the first, which warms up, when there are others; of two the shorter.
std::size_t median_step(std::span<const Picoseconds> times);

// The report of a run: times and attribution of its median step, low and high of all steps but the first, memory as the
// ranks' allocators counted it, losses. on_gpus: the spec's own device measured it, so that its peak counts.
Report measured_report(const Spec& spec, const Plan& unfolded, std::span<const RankRun> runs, const Trace& trace,
                       bool on_gpus = false);

// The report of a step composed of ranks that ran alone (compose.h): times of the trace, memory of the ranks. notes:
// notes on transfers.
Report composed_report(const Spec& spec, const Plan& unfolded, std::span<const RankRun> alone, const Trace& trace,
                       std::span<const TransferNote> notes);

}  // namespace orrery
