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

// Reads the files that all ranks of a run have written, in the order of ranks. unfolded: the plan of all ranks; hash:
// the hash of the folded plan, which has one rank of each class of equal ranks. Throws Error for a file that is broken,
// or that belongs to another plan or has other steps than the rest. A parameter server that the folder lists as lost
// left no file; the file of another server of its chain, which did the same work, is used instead.
std::vector<RankRun> read_runs(const std::string& folder, const Plan& unfolded, const std::string& hash);

// The trace of step k of a run on one clock, that of rank 0. The step lasts from the moment when the last rank ended
// the step before (for the first step: from the begin of the first rank) to the moment when the last rank ended step k,
// so that the durations of steps add up to that of the run; times before the step's begin are set to 0. A transfer
// counts as matched when the last of its ranks has entered it, clamped to [entered, ended] on each rank, since the
// clocks of ranks do not agree exactly.
Trace measured_trace(const Plan& unfolded, std::span<const RankRun> runs, std::size_t step);

// The durations of all steps of a run; measured_trace() says when a step begins and ends.
std::vector<Picoseconds> step_times(std::span<const RankRun> runs);

// The index of the step of median time. The first step, which warms up, does not count if there are others. Of an even
// number of steps the shorter of the two middle ones is taken.
std::size_t median_step(std::span<const Picoseconds> times);

// The report of a run: times and attribution of the median step, shortest and longest time of all steps but the first,
// memory as the ranks' allocators counted it, and losses. on_gpus: whether the run was on the spec's device, so that
// the device's own peak of memory counts.
Report measured_report(const Spec& spec, const Plan& unfolded, std::span<const RankRun> runs, const Trace& trace,
                       bool on_gpus = false);

// The report of a step that is composed of the measurements of ranks that ran one by one (compose.h). Times are those
// of the composed trace (`trace`), memory is what each rank measured. notes: link and algorithm of each op's transfers.
Report composed_report(const Spec& spec, const Plan& unfolded, std::span<const RankRun> alone, const Trace& trace,
                       std::span<const TransferNote> notes);

}  // namespace orrery
