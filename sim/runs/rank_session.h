#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/runs/launch.h"
#include "sim/runs/processes.h"

namespace orrery {

// One process of the program for GPU ranks that runs a list of jobs one after another (orrery-rank-cuda --jobs), so
// that CUDA starts only once. The process begins with the first job. A job that fails ends the process, and the next
// job starts another. Only one ProcessTree may exist at a time, so nothing else may start programs meanwhile.
class RankSession {
 public:
  RankSession();
  ~RankSession();
  RankSession(const RankSession&) = delete;
  RankSession& operator=(const RankSession&) = delete;

  // Gives the process a job: the words of the job's command line, without the program's name. Returns the process.
  ProcessTree& give(const std::vector<std::string>& words);
  // The path of the file that holds all that the process has printed.
  const std::string& log() const { return log_; }
  // Ends the process at once, because a job has failed.
  void abandon();
  // Waits until the process has ended after its last job. Throws Error with the last line of its log if the process
  // failed.
  void end();

 private:
  void start();
  void close_pipe();

  HeldSignals signals_;
  TemporaryFolder folder_;
  std::string program_, pipe_, log_;
  int jobs_ = -1;  // descriptor of the pipe through which the process gets jobs
  std::optional<ProcessTree> tree_;
};

// The last line of a program's log, "" if it is empty.
std::string last_line(const std::string& log);

}  // namespace orrery
