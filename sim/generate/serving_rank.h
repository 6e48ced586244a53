#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "sim/generate/serving_load.h"

namespace orrery {

// A request to an inference stack. Its answer begins with a token from the last pass over its prompt; each further pass
// adds ServingLoad::tokens_a_pass.
struct Request {
  std::int64_t input = 0, output = 0;  // tokens of the prompt, and of the answer
  std::int64_t passes = 1;             // that make the answer, the last one over the prompt among them
  double sent_s = 0, first_s = -1;     // when it was sent, and when its first token came; -1 before that
  double ready_s = 0;                  // when its prompt has been turned into tokens
  std::int64_t answered = 0;           // passes of the answer so far, when it was put off
  std::int64_t left = 0;               // tokens of the prompt, and of what was answered, that no pass has taken yet
};

// The requests of one data rank of an inference stack: those that wait for passes over their prompts, and those that
// are being answered, whose keys and values are in the rank's cache.
class ServingRank {
 public:
  explicit ServingRank(const ServingLoad& load) : load_(&load) {}

  void add(const Request& request) { waiting_.push_back(request); }
  std::int64_t answering() const { return std::ssize(answers_); }
  std::int64_t waiting() const { return std::ssize(waiting_); }
  // Whether a request waits that the cache has room for and the stack allows.
  bool can_begin() const;
  // Tokens in the cache of a request that is being answered, on average; 0 without any.
  double context() const;

  // Takes tokens of prompts that wait into the next pass, in order. Returns their number.
  std::int64_t take_prompts();
  // Puts off the requests that would end last, until the next tokens of every other one have room.
  void put_off();
  // Ends a pass at now_s: requests in progress have their tokens if the pass was theirs too (answers), and those whose
  // prompts were taken to their ends have their first. Returns the requests whose answers are complete.
  std::vector<Request> end_pass(bool answers, double now_s);

 private:
  double tokens_after(const Request& r, std::int64_t passes) const;
  double room_of(const Request& r) const;
  double room_taken() const;
  bool has_slot() const { return answering() + std::ssize(begun_) < load_->sequences; }

  const ServingLoad* load_;
  std::deque<Request> waiting_;
  std::vector<Request> begun_;                    // whose prompts end with the pass that is under way
  std::multimap<std::int64_t, Request> answers_;  // by the number of passes with answers after which they end
  std::int64_t passes_ = 0;                       // passes with answers so far
  double context_ = 0, reserved_ = 0;  // tokens in the cache, and tokens that requests in progress may have there
};

}  // namespace orrery
