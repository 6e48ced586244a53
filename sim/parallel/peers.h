#pragma once

#include <functional>
#include <memory>

#include "models/run/peers.h"

namespace orrery {

// The processes that mpirun or srun started together with this one; nullptr where it is alone. They talk through the
// plugin orrery-peers.so beside this program (exec/mpi/peers.cpp), the only thing here that needs MPI. Throws Error
// where it is missing, or knows fewer processes than the launcher started.
std::unique_ptr<Peers> peers_of_environment();

// Runs f() in every process; if it throws Error in some, throws the first of these, by rank, in all. peers: nullptr,
// alone.
void together(Peers* peers, const std::function<void()>& f);

// Runs say() in one process, the first, or in the next if that one is lost before say() has returned. Returns in all
// processes once say() has.
void said_by_one(Peers& peers, const std::function<void()>& say);

}  // namespace orrery
