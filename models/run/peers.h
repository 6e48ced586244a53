#pragma once

#include <string>
#include <vector>

namespace orrery {

// Communication between the processes that work on one task together, started by a launcher (mpirun, srun), as seen by
// one of them. For one thread at a time. Implementations throw Error if a message cannot be passed. A process that ends
// or stops is lost: the others go on without it, though not all need notice the loss at once.
class Peers {
 public:
  virtual ~Peers() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The process that prints: the first one that, as far as this process knows, is not lost.
  virtual int first() const { return 0; }
  // Gathers the bytes of all processes, by rank; no process sends an empty text, so an empty text means a lost process.
  // All processes must call it equally often; it waits for the last.
  virtual std::vector<std::string> gather(const std::string& mine) = 0;
  // Ends all processes at once, for a failure that only one of them sees.
  virtual void abort(int status) = 0;
};

// The C function by which the plugin (exec/mpi/peers.cpp) makes its Peers.
inline constexpr char kMakePeers[] = "orrery_make_peers";
using MakePeers = Peers*();

}  // namespace orrery
