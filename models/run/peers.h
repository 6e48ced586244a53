#pragma once

#include <string>
#include <vector>

namespace orrery {

// Peers is the communication between the processes that a launcher (mpirun, srun) started to work on one task together,
// as seen by one of them. A Peers object must be used by one thread at a time. Implementations throw Error if a message
// cannot be passed. A process that ends or is stopped is lost: the other processes continue without it, though they
// need not all notice the loss at the same time.
class Peers {
 public:
  virtual ~Peers() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Returns the number of the process that prints: the lowest number of a process that, as far as this process knows,
  // is not lost.
  virtual int first() const { return 0; }
  // Gathers one string from every process, in order of their numbers. No process sends an empty string, so an empty
  // string means a lost process. All processes must call this function the same number of times; it waits for the last
  // process.
  virtual std::vector<std::string> gather(const std::string& mine) = 0;
  // Ends all processes immediately, for a failure that only one of them observes.
  virtual void abort(int status) = 0;
};

// The name of the C function by which the MPI plugin (exec/mpi/peers.cpp) makes its Peers object.
inline constexpr char kMakePeers[] = "orrery_make_peers";
using MakePeers = Peers*();

}  // namespace orrery
