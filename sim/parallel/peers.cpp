#include "sim/parallel/peers.h"

#include <dlfcn.h>

#include <cstdlib>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/installed.h"
#include "sim/parallel/wire.h"

namespace orrery {
namespace {

// Environment variables that hold the number of processes started together: of Open MPI's mpirun, of MPICH's mpirun and
// other launchers that use PMI, and of srun (Slurm).
constexpr const char* kPeerSizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};

long launched() {
  for (const char* name : kPeerSizes) {
    if (const char* value = std::getenv(name)) return std::strtol(value, nullptr, 10);
  }
  return 1;
}

}  // namespace

std::unique_ptr<Peers> peers_of_environment() {
  const long processes = launched();
  if (processes < 2) return nullptr;
  const std::string path = companion(kPeersPlugin);
  // The plugin (orrery-peers.so) is loaded with RTLD_GLOBAL, because MPI libraries load components that need its
  // symbols. It is never unloaded, because those components cannot be.
  void* const plugin = path.empty() ? nullptr : ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  void* const make = plugin == nullptr ? nullptr : ::dlsym(plugin, kMakePeers);
  if (make == nullptr)
    throw Error(fmt::format("{} processes were started together, and {}; build it where Open MPI is (libopenmpi-dev), "
                            "or start one process",
                            processes,
                            path.empty() ? fmt::format("{} is not beside {}", kPeersPlugin, program_folder())
                                         : std::string(::dlerror())),
                1);
  std::unique_ptr<Peers> peers(reinterpret_cast<MakePeers*>(make)());
  if (peers->size() != processes)
    throw Error(fmt::format("{} processes were started together, and MPI knows {} of them; start them by the launcher "
                            "of the MPI library that this program was built with (srun: --mpi=pmix)",
                            processes, peers->size()),
                1);
  return peers;
}

void together(Peers* peers, const std::function<void()>& f) {
  if (peers == nullptr) return f();
  std::string wrong;
  int code = 0;
  try {
    f();
  } catch (const Error& error) {
    wrong = error.what();
    code = error.exit_code;
  }
  const auto share = [&](Wire& wire) {
    wire.share(wrong);
    wire.share(code);
  };
  Wire mine;
  share(mine);
  WireNames names;
  for (const std::string& bytes : peers->gather(mine.take())) {
    if (bytes.empty()) continue;  // no answer: the process was lost
    Wire wire(bytes, names);
    share(wire);
    wire.end();
    if (code != 0) throw Error(wrong, code);
  }
}

void said_by_one(Peers& peers, const std::function<void()>& say) {
  constexpr std::string_view kSaid = "said", kWaits = "waits";
  for (bool said = false; !said;) {
    if (peers.first() == peers.rank()) {
      say();
      said = true;
    }
    // A process that fails reports its own error and then takes part in gather() with another word than kWaits, so that
    // the remaining processes stop waiting.
    for (const std::string& word : peers.gather(std::string(said ? kSaid : kWaits)))
      said = said || (!word.empty() && word != kWaits);
  }
}

}  // namespace orrery
