#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "models/base/units.h"

namespace orrery {

// This process's rank and the address of rank 0, from the environment variables that torchrun sets (RANK, WORLD_SIZE,
// LOCAL_RANK, MASTER_ADDR, MASTER_PORT), or from those of mpirun and srun together with MASTER_ADDR and MASTER_PORT
// (default: this machine, 29500, as in PyTorch). If none is set, this process is the only rank.
struct RankPlacement {
  std::int64_t rank = 0, ranks = 1;
  std::int64_t local_rank = 0;
  std::string address = "127.0.0.1";
  std::uint16_t port = 29500;
  bool launched = false;  // whether any environment variable of a launcher was set
};
RankPlacement placement_of_environment();

// A key-value store of a few short strings that all processes of a job share over TCP: rank 0 serves it, every process
// connects. It is used to exchange NCCL's ids before NCCL is initialised, and to compare clocks. Rank 0 listens only at
// MASTER_ADDR, stores at most 16 MiB, and accepts few more connections than there are ranks; clients are not
// authenticated, so the network must be private. Throws Error "host:port: reason" if the other processes do not connect
// in time, or have ended.
class Rendezvous {
 public:
  Rendezvous(const RankPlacement& placement, Seconds patience);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  void set(const std::string& key, const std::string& value);
  std::string get(const std::string& key);  // returns the value of a key; waits until a process has set it
  // Waits until all ranks have called barrier() with this name; each name can be used only once.
  void barrier(const std::string& name);
  Picoseconds time();  // returns the time of rank 0's steady clock

 private:
  class Server;
  class Connection;

  std::unique_ptr<Server> server_;  // the server that rank 0 runs; null on the other ranks
  std::unique_ptr<Connection> connection_;
};

// Returns a port of this machine at which no process listens. Another process may take the port before it is used.
std::uint16_t free_port();

// The offset to add to a time of this process's steady clock to get the time of rank 0's steady clock. The largest
// possible error of the offset (uncertainty) is half of the shortest of several round trips (Cristian 1989).
struct ClockOffset {
  Picoseconds offset = 0, uncertainty = 0;
};
ClockOffset clock_of(Rendezvous& rendezvous);

}  // namespace orrery
