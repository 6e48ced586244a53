#pragma once

#include <functional>
#include <memory>

#include "models/run/peers.h"

namespace orrery {

inline constexpr const char* kPeersPlugin = "orrery-peers.so";

// The processes that mpirun or srun started together with this one; nullptr if it was started alone. They communicate
// through the plugin orrery-peers.so beside this program (exec/mpi/peers.cpp), the only part of the program that needs
// MPI. Throws Error if the plugin is missing, or knows fewer processes than the launcher started.
std::unique_ptr<Peers> peers_of_environment();

// Runs f() in every process. If f throws Error in some processes, all processes throw the Error of the one with the
// lowest rank. peers: nullptr if this process is alone.
void together(Peers* peers, const std::function<void()>& f);

// Runs say() in one process only: the first or, if that process is lost before say() has returned, the next one.
// Returns in all processes once say() has returned in one.
void said_by_one(Peers& peers, const std::function<void()>& say);

}  // namespace orrery
