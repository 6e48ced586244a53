#pragma once

#include <functional>
#include <memory>

#include "models/run/peers.h"

namespace orrery {

inline constexpr const char* kPeersPlugin = "orrery-peers.so";

// The processes that mpirun or srun started together with this one; nullptr where it was started alone. They talk
// through the plugin orrery-peers.so beside this program (exec/mpi/peers.cpp), the only thing here that needs MPI.
// Throws Error where the plugin is missing, or knows fewer processes than the launcher started.
std::unique_ptr<Peers> peers_of_environment();

// Runs f() in every process; if it throws Error in some of them, all throw the Error of the lowest rank among these.
// peers: nullptr if this process is alone.
void together(Peers* peers, const std::function<void()>& f);

// Runs say() in the first process only, or in the next if the first is lost before say() has returned. Returns in all
// processes once say() has returned in one.
void said_by_one(Peers& peers, const std::function<void()>& say);

}  // namespace orrery
