#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// The tasks by which the last pipeline stage sends the tokens that a pass of generation chose to the first stage, which
// looks them up in the next pass. Each call of before() or after() appends tasks to the joined plan of all passes.
//
// Let i = k m + j be micro-batch j of m of pass k, and p the number of stages. A token of i is sent as soon as it is
// chosen. The first stage receives it before it sends the activations of i + p - 1, for which the last stage would
// wait before it sends this token if all transfers of a rank shared one queue; and in any case before i + m, which
// reads the token. With virtual stages, all tokens of a pass are sent when it has ended.
class TokenHandOver {
 public:
  // first_choice: the number of the first pass that chooses tokens.
  TokenHandOver(Plan& joined, const Spec& spec, std::int64_t micro_batches, std::int64_t first_choice);

  // Called before and after each task t of class `slot` in pass number `pass` of the generation is appended; `plan` is
  // the pass's own plan.
  void before(std::uint32_t slot, std::int64_t pass, const Plan& plan, TaskId t);
  void after(std::uint32_t slot, std::int64_t pass, const Plan& plan, TaskId t);

  // The sends and receives of tokens, by micro-batch of the generation and by class within the stage.
  const std::map<std::pair<std::int64_t, std::uint32_t>, std::vector<TaskId>>& ends() const { return ends_; }

 private:
  std::uint32_t add_frame(std::uint32_t slot, std::uint32_t block, std::int64_t item);
  TaskId add(std::uint32_t op, std::uint32_t frame, std::uint32_t slot, const std::vector<TaskId>& after);
  void send(std::uint32_t slot, std::int64_t item);
  void receive(std::uint32_t slot, std::int64_t item);
  void read(std::uint32_t slot, std::int64_t item);
  bool chosen(std::int64_t item) const { return item >= first_ && item + of_pass_ < joined_.micro_batches; }
  std::uint32_t in_stage(std::uint32_t slot) const;

  Plan& joined_;
  std::int64_t stages_ = 1, of_pass_ = 1, first_ = 0;  // first_: the first micro-batch of which tokens are chosen
  bool drains_ = false;                                // whether tokens are sent only when their pass has ended
  std::uint32_t sent_block_ = 0, received_block_ = 0;
  std::uint32_t load_ = 0, send_ = 0, receive_ = 0, take_ = 0;  // ids of ops
  // for each class of the first stage and each micro-batch whose tokens were received but not read, its receive
  std::map<std::pair<std::uint32_t, std::int64_t>, TaskId> received_;
  std::map<std::pair<std::int64_t, std::uint32_t>, std::vector<TaskId>> ends_;
};

}  // namespace orrery
