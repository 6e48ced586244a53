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

// Watches the ranks of a run from inside one of them, where no launcher of Orrery does: under the user's own mpirun or
// srun. A thread reads the progress files of the folder; when a rank has failed, or makes no progress for longer than
// `patience`, it calls give_up once with the line that names the rank and the place. Processes are not looked up: the
// launcher sees their deaths. The destructor ends the thread.
class Watch {
 public:
  // unfolded: the plan with all ranks. give_up: prints the line and ends this process, whereupon the launcher ends the
  // others.
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
  std::thread thread_;  // declared last, because the thread uses the other members
};

}  // namespace orrery
