#pragma once

#include <string>
#include <vector>

#include "sim/launch/shell_values.h"

namespace orrery {

// Finds which commands of a shell script are reached, by following if, elif, else and case. If a condition on files or
// on a command's result cannot be decided, its branch counts as not reached. The body of a loop is read once, with the
// first item.
class ShellFlow {
 public:
  // Must be called with each command before it is read: removes control-flow words from the command's beginning, and
  // all words of a condition.
  void enter(ShellCommand& command, ShellValues& values, const std::string& path);
  // Must be called with each command after it was read: notes the end of a branch of a case (";;").
  void leave(const ShellCommand& command);
  bool active() const;  // whether the script reaches the command that is being read
  void stop() { ended_ = true; }
  bool ended() const { return ended_; }
  // source lines of conditions that could not be decided: "train.sh:12"
  const std::vector<std::string>& undecided() const { return undecided_; }

 private:
  struct Frame {
    bool is_case = false;
    // active: whether the script reaches this branch of an if or case; taken: whether it has reached an earlier branch.
    bool active = true, taken = false;
    bool testing = false;     // whether the commands being read are a condition, between if and then
    bool at_pattern = false;  // in a case: whether the next word is a pattern
    std::string subject;      // in a case: the word to match
    bool matched = false;     // in a case: whether a pattern read so far (a|b) matches
    std::string joined_by;    // operator between the previous condition and the next one: "&&" or "||"
  };
  enum class Truth : unsigned char { no, yes, undecided };
  Truth test(const ShellCommand& command, std::size_t first, ShellValues& values);
  void decide(Frame& frame, const ShellCommand& command, std::size_t first, ShellValues& values,
              const std::string& path);
  // Notes that an if, loop or case begins with a command (open) or ends with it (close); returns false for other
  // commands.
  bool open(const std::string& word, ShellCommand& command, ShellValues& values, const std::string& path);
  bool close(const std::string& word, ShellCommand& command);
  // Reads a command that belongs to an if, loop or case that has begun: elif, else, then, do, or a further condition;
  // returns false for other commands.
  bool branch(const std::string& word, ShellCommand& command, ShellValues& values, const std::string& path);
  void push(Frame frame);
  void enter_case(Frame& frame, ShellCommand& command, ShellValues& values);
  bool reached(std::size_t frames) const;

  std::vector<Frame> frames_;
  bool skip_next_ = false;  // whether a condition before && or || has decided that the next command is not run
  bool skipping_ = false;
  bool ended_ = false;
  std::vector<std::string> undecided_;
};

}  // namespace orrery
