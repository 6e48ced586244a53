#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "models/base/units.h"

namespace orrery {

// This process's rank and the address of rank 0, from the variables that torchrun sets (RANK, WORLD_SIZE, LOCAL_RANK,
// MASTER_ADDR, MASTER_PORT), or those of mpirun and srun beside MASTER_ADDR and MASTER_PORT (default: this machine,
// 29500, as in PyTorch). One process of one rank where none is set.
struct Placement {
  std::int64_t rank = 0, ranks = 1;
  std::int64_t local_rank = 0;
  std::string address = "127.0.0.1";
  std::uint16_t port = 29500;
  bool launched = false;  // whether any of the variables was set
};
Placement placement_of_environment();

// A key-value store of a few short texts that all processes of a job share, over TCP: rank 0 serves, every process
// connects. Used to exchange NCCL's id before NCCL is up, and to compare clocks. Rank 0 listens only at MASTER_ADDR,
// keeps 16 MiB at most, and accepts few more connections than there are ranks; clients are not authenticated, so the
// network must be private. Throws Error "host:port: what" when the other processes do not come in time, or are gone.
class Rendezvous {
 public:
  Rendezvous(const Placement& placement, Seconds patience);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  void set(const std::string& key, const std::string& value);
  std::string get(const std::string& key);  // waits until a process has set the key
  void barrier(const std::string& name);    // waits until all ranks have called it; a name can be used once
  Picoseconds time();                       // rank 0's steady clock

 private:
  class Server;
  class Connection;

  std::unique_ptr<Server> server_;  // set on rank 0
  std::unique_ptr<Connection> connection_;
};

// The offset to add to this process's steady clock to get rank 0's, and the largest error of the offset: half of the
// shortest round trip out of several (Cristian 1989).
struct ClockOffset {
  Picoseconds offset = 0, uncertainty = 0;
};
ClockOffset clock_of(Rendezvous& rendezvous);

}  // namespace orrery
