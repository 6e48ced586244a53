#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "exec/host/execute.h"
#include "exec/host/text.h"
#include "exec/memory/rank.h"
#include "models/spec/asynchrony.h"

namespace orrery {

// One event in the run of a parameter server. If `update` is true, the server applied the gradients that the worker
// pushed at the end of its step `clock`, which gave version `version` of the weights; otherwise the server sent that
// version to the worker for its step `clock`.
struct Served {
  bool update = true;
  std::int64_t worker = 0, clock = 0, version = 0;
};

// Returns whether this rank is a parameter server that handles pushes in the order of arrival
// (models/spec/asynchrony.h) and not in the plan's order.
bool serves_arrivals(const Rank& rank);

// Runs a parameter server that handles pushes in the order of arrival, for options.steps steps of every worker. The
// plan's tasks are executed once for each push, in the order in which the last messages of the pushes arrive; messages
// of several pushes may come mixed. A worker gets the weights after its own push has been applied and, with bounded
// staleness, after all other workers have progressed far enough; the worker that has waited longest comes first.
// Workers use the same messages as for synchronous pushes and pulls. order: receives the updates and the sends of
// weights, in the order in which they happened. Throws Error if MPI fails.
Execution serve(MPI_Comm world, const Rank& rank, const Text& text, const ExecuteOptions& options,
                std::vector<Served>& order);

// Computes the staleness of the weights that one server sent to its workers.
Staleness staleness_of(const std::vector<Served>& order, std::int64_t workers);

}  // namespace orrery
