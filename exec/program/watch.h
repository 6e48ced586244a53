#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "models/plan/plan.h"
#include "models/run/witness.h"

namespace orrery {

// Watches the ranks of a run from inside one of them, when the user's own mpirun or srun started them instead of
// Orrery's launcher. A thread reads the progress files in the folder; when a rank has failed, or makes no progress for
// longer than `patience`, it calls give_up once with a message that names the rank and its task. It does not check
// whether processes exist, because the user's launcher notices when a process ends. The destructor ends the thread.
class Watch {
 public:
  // unfolded: the plan of all ranks. give_up: prints the message and ends this process, whereupon the launcher ends the
  // other ranks.
  Watch(std::string folder, Plan unfolded, std::int64_t steps, Patience patience,
        std::function<void(const Fault&)> give_up);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  void run();

  std::string folder_;
  Plan plan_;
  std::int64_t steps_;
  Patience patience_;
  std::function<void(const Fault&)> give_up_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread thread_;  // declared last, because this thread uses the other members
};

}  // namespace orrery
