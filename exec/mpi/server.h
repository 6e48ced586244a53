#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "exec/host/execute.h"
#include "exec/host/text.h"
#include "exec/memory/rank.h"
#include "models/spec/asynchrony.h"

namespace orrery {

// One thing that a server did: it updated its weights with what a worker pushed at the end of its step `clock`, which
// made them version `version`; or it handed that version out for a worker's step `clock`.
struct Served {
  bool update = true;
  std::int64_t worker = 0, clock = 0, version = 0;
};

// Whether this rank is a server that works in order of arrival (models/spec/asynchrony.h), rather than in its plan's.
bool serves_arrivals(const Rank& rank);

// Runs such a server for options.steps steps of every worker: the plan's tasks once for each worker's push, in the
// order in which the last messages of pushes come. Pushes of several workers may be under way at once. What a worker
// pulls is handed out when its push is in the weights and, with bounded staleness, when all others have come far
// enough; who waits longest is served first. Workers know nothing of it: their messages are those of a push and a pull
// in step. order: what was done, in order. Throws Error where MPI does.
Execution serve(MPI_Comm world, const Rank& rank, const Text& text, const ExecuteOptions& options,
                std::vector<Served>& order);

// Of what one server did.
Staleness staleness_of(const std::vector<Served>& order, std::int64_t workers);

}  // namespace orrery
