#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "models/base/units.h"

namespace orrery {

// Where the processes of a job find each other, in the variables that torchrun sets (RANK, WORLD_SIZE, LOCAL_RANK,
// MASTER_ADDR, MASTER_PORT), or those of mpirun and srun beside MASTER_ADDR and MASTER_PORT (default: this machine,
// 29500, as PyTorch has it). One process of one rank where nothing is set.
struct Placement {
  std::int64_t rank = 0, ranks = 1;
  std::int64_t local_rank = 0;
  std::string address = "127.0.0.1";
  std::uint16_t port = 29500;
  bool launched = false;  // whether anything was set
};
Placement placement_of_environment();

// A few short texts by name that all processes of a job share, over TCP: rank 0 serves, everybody connects. For what
// must be told before a library for that is up (NCCL's id), and to compare clocks. Rank 0 listens at MASTER_ADDR alone,
// keeps 16 MiB at most, and talks to few more than the ranks; nobody is asked who they are: the network must be one's
// own. Throws Error "host:port: what" when
// the others do not come in time, or are gone.
class Store {
 public:
  Store(const Placement& placement, Seconds patience);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void set(const std::string& key, const std::string& value);
  std::string get(const std::string& key);  // waits until somebody has set it
  void barrier(const std::string& name);    // until all ranks are there; a name serves once
  Picoseconds time();                       // rank 0's steady clock

 private:
  class Server;
  std::string ask(char what, const std::string& key, const std::string& value);

  Placement placement_;
  Seconds patience_;
  std::unique_ptr<Server> server_;  // of rank 0
  int socket_ = -1;
};

// What to add to this process's steady clock to get rank 0's, and by how much that may be wrong: half of the shortest
// round trip out of several (Cristian 1989).
struct ClockOffset {
  Picoseconds offset = 0, uncertainty = 0;
};
ClockOffset clock_of(Store& store);

}  // namespace orrery
