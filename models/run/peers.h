#pragma once

#include <string>
#include <vector>

namespace orrery {

// The processes that work on one thing together, as a launcher (mpirun, srun) has started them; this one is one of
// them. For one thread at a time. Implementations throw Error where a message cannot pass. A process that ends or stops
// is lost: the others go on without it, though not all need learn of the loss at once.
class Peers {
 public:
  virtual ~Peers() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The process that prints: the first that is not lost, as far as this one knows.
  virtual int first() const { return 0; }
  // Gathers the bytes of all processes, by rank; no process sends an empty text, so the texts of lost processes are
  // empty. All processes call it equally often; it waits for the last.
  virtual std::vector<std::string> gather(const std::string& mine) = 0;
  // Ends all processes now, for a failure that hits one of them alone.
  virtual void abort(int status) = 0;
};

// The function that the plugin (exec/mpi/peers.cpp) offers under this name, with C linkage.
inline constexpr char kMakePeers[] = "orrery_make_peers";
using MakePeers = Peers*();

}  // namespace orrery
