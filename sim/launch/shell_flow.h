#pragma once

#include <string>
#include <vector>

#include "sim/launch/shell_values.h"

namespace orrery {

// Which commands of a script are reached: follows if, elif, else and case. A condition on files or on a command's
// result is undecided, and its branch left out. The body of a loop is reached once, with the first item.
class ShellFlow {
 public:
  // Called with each command before it is looked at: takes the words of control flow off its front, and all words of a
  // condition.
  void enter(ShellCommand& command, ShellValues& values, const std::string& path);
  // Called with each command after it was looked at.
  void leave(const ShellCommand& command);
  bool active() const;  // whether the command is reached
  void stop() { ended_ = true; }
  bool ended() const { return ended_; }
  const std::vector<std::string>& undecided() const { return undecided_; }  // places of conditions: "train.sh:12"

 private:
  struct Frame {
    bool is_case = false;
    bool active = true, taken = false;  // whether this branch is reached, and whether one was
    bool testing = false;               // between if and then
    bool at_pattern = false;            // case: the next word is a pattern
    std::string subject;                // case: the word to match
    bool matched = false;               // case: one of the patterns so far (a|b) matches
    std::string joined_by;              // sign between two conditions
  };
  enum class Truth : unsigned char { no, yes, undecided };
  Truth test(const ShellCommand& command, std::size_t first, ShellValues& values);
  void decide(Frame& frame, const ShellCommand& command, std::size_t first, ShellValues& values,
              const std::string& path);
  void enter_case(Frame& frame, ShellCommand& command, ShellValues& values);
  bool reached(std::size_t frames) const;

  std::vector<Frame> frames_;
  bool skip_next_ = false;  // after a condition that ends with && and does not hold
  bool skipping_ = false;
  bool ended_ = false;
  std::vector<std::string> undecided_;
};

}  // namespace orrery
