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

// Reads the files of all ranks of a run, in order. unfolded: the plan of all ranks; hash: the hash of the plan with one
// rank of each class. Throws Error for a file that is broken, or that belongs to another plan or to other steps than
// the other files. A parameter server listed as lost in the folder left no file; the file of another server of its
// chain, which did the same work, is used instead.
std::vector<RankRun> read_runs(const std::string& folder, const Plan& unfolded, const std::string& hash);

// The trace of step k on one clock, that of rank 0. The step lasts from the moment when the last rank had ended the
// step before to the moment when the last rank has ended this one (the first step: from the begin of the first rank),
// so that steps add up to the run; earlier times of a rank are set to 0. A transfer is matched when the last of its
// ranks has entered it, clamped to [entered, ended] of each rank, since the clocks of the ranks do not agree exactly.
Trace measured_trace(const Plan& unfolded, std::span<const RankRun> runs, std::size_t step);

// The times of every step, as measured_trace() counts them.
std::vector<Picoseconds> step_times(std::span<const RankRun> runs);

// The index of the step of median time; the first step, which warms up, is left out if there are others. Of an even
// number of steps the shorter of the two middle ones is taken.
std::size_t median_step(std::span<const Picoseconds> times);

// The report of a run: times and attribution of the median step, shortest and longest time of all steps but the first,
// memory as counted by the allocators of the ranks, and losses. on_gpus: whether the run was on the device of the spec,
// so that the device's own peak memory counts.
Report measured_report(const Spec& spec, const Plan& unfolded, std::span<const RankRun> runs, const Trace& trace,
                       bool on_gpus = false);

// The report of a step composed from ranks that ran alone (compose.h): times are those of the trace, memory is that
// measured by the ranks. notes: link and algorithm of each transfer.
Report composed_report(const Spec& spec, const Plan& unfolded, std::span<const RankRun> alone, const Trace& trace,
                       std::span<const TransferNote> notes);

}  // namespace orrery
