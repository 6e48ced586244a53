#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "exec/host/execute.h"
#include "exec/host/text.h"
#include "exec/memory/rank.h"
#include "models/spec/asynchrony.h"

namespace orrery {

// One action of a server: it updated its weights with the gradients that a worker pushed at the end of its step
// `clock`, which made them version `version`; or it sent that version for a worker's step `clock`.
struct Served {
  bool update = true;
  std::int64_t worker = 0, clock = 0, version = 0;
};

// Whether this rank is a server that works in order of arrival (models/spec/asynchrony.h), not in plan order.
bool serves_arrivals(const Rank& rank);

// Runs a server that works in order of arrival, for options.steps steps of every worker: the plan's tasks once for each
// worker's push, in the order in which the last messages of pushes arrive. Pushes of several workers may be under way
// at once. A worker gets the weights that it pulls when its push is in the weights and, with bounded staleness, when
// all other workers have come far enough; the worker that has waited longest is served first. Workers do not see this:
// their messages are those of synchronous pushes and pulls. order: receives the actions, in order. Throws Error where
// MPI does.
Execution serve(MPI_Comm world, const Rank& rank, const Text& text, const ExecuteOptions& options,
                std::vector<Served>& order);

// The staleness of one server's actions.
Staleness staleness_of(const std::vector<Served>& order, std::int64_t workers);

}  // namespace orrery
