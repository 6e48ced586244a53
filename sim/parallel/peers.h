#pragma once

#include <functional>
#include <memory>

#include "models/run/peers.h"

namespace orrery {

// The processes that mpirun or srun started together with this one; nullptr where it is alone. They talk through the
// plugin orrery-peers.so beside this program (exec/mpi/peers.cpp), the only thing here that needs MPI. Throws Error
// where it is missing, or knows fewer processes than the launcher started.
std::unique_ptr<Peers> peers_of_environment();

// f() in every process; where it throws Error in some, in all the first of these, by rank. peers: nullptr, alone.
void together(Peers* peers, const std::function<void()>& f);

// say() in one process, once it has returned in all: in the first, and in the next where that is lost before.
void said_by_one(Peers& peers, const std::function<void()>& say);

}  // namespace orrery
