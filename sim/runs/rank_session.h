#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/runs/launch.h"
#include "sim/runs/processes.h"

namespace orrery {

// The program for GPU ranks as one process that runs the jobs of a list one after the other (orrery-rank-cuda --jobs),
// so that CUDA starts once for all of them. The process begins with the first job; a job that fails ends it, and the
// next job begins another. Only one ProcessTree may live at a time, so nothing else may start programs meanwhile.
class RankSession {
 public:
  RankSession();
  ~RankSession();
  RankSession(const RankSession&) = delete;
  RankSession& operator=(const RankSession&) = delete;

  // Hands the process the words of a job's command line, without the program's name, and returns the process.
  ProcessTree& give(const std::vector<std::string>& words);
  const std::string& log() const { return log_; }  // the file with all that the process has printed
  void abandon();                                  // ends the process at once, because a job has failed
  // Waits until the process has ended after its last job. Throws Error with its last line where it ends with a failure.
  void end();

 private:
  void start();
  void close_pipe();

  HeldSignals signals_;
  TemporaryFolder folder_;
  std::string program_, pipe_, log_;
  int jobs_ = -1;  // descriptor of the pipe
  std::optional<ProcessTree> tree_;
};

// The last line of a program's log, "" if it is empty.
std::string last_line(const std::string& log);

}  // namespace orrery
