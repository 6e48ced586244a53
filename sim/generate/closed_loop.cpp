#include "sim/generate/closed_loop.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <vector>

namespace orrery {
namespace {

struct Request {
  std::int64_t input = 0, output = 0;  // tokens of the prompt, and of the answer
  double sent_s = 0, first_s = -1;     // when it was sent, and when its first token came; -1 before that
  std::int64_t sent_after = 0;         // passes that had ended when it was sent
  std::int64_t answered = 0;           // tokens of the answer so far, when it was put off
  std::int64_t left = 0;               // tokens of the prompt, and of what was answered, that no pass has taken yet

  std::int64_t context() const { return input + answered; }
};

class Loop {
 public:
  Loop(const ClosedLoop& loop, const PassTimes& times) : loop_(loop), times_(times) {}

  LoopFigures play() {
    for (std::int64_t i = 0; i < loop_.clients; ++i) send();
    while (ended_ < loop_.requests) {
      poll();
      pass();
    }
    const auto n = static_cast<double>(loop_.requests);
    return {sums_.first_token_s / n, sums_.token_s / n, now_, sums_.tokens};
  }

 private:
  // Lengths spread evenly and without order: multiples of an irrational number, without their whole parts.
  static std::int64_t spread(std::int64_t longest, double shortest, double irrational, std::int64_t number) {
    const double share = std::fmod(static_cast<double>(number) * irrational, 1.0);
    return std::max<std::int64_t>(1, std::llround(static_cast<double>(longest) * (shortest + (1 - shortest) * share)));
  }

  void send() {
    if (sent_ == loop_.requests) return;
    Request r = {.input = spread(loop_.input, loop_.shortest, std::sqrt(2), sent_),
                 .output = spread(loop_.output, loop_.shortest, std::sqrt(3), sent_),
                 .sent_s = now_,
                 .sent_after = all_passes_};
    r.left = r.input;
    sent_requests_.push_back(r);
    ++sent_;
  }

  // Takes what was sent into the line of requests that wait, if it is time to look.
  void poll() {
    const bool idle = answering() == 0 && waiting_.empty();
    if (unpolled_ < loop_.poll_passes && !idle) return;
    unpolled_ = 0;
    const bool late = loop_.overlaps && !idle;  // the next pass is launched already
    while (!sent_requests_.empty() && (!late || sent_requests_.front().sent_after < all_passes_)) {
      waiting_.push_back(sent_requests_.front());
      sent_requests_.pop_front();
    }
    if (idle) host_free_s_ = 0;
  }

  double bytes(std::int64_t requests, std::int64_t tokens) const {
    return static_cast<double>(requests) * loop_.state_bytes + static_cast<double>(tokens) * loop_.token_bytes;
  }
  // Room in the cache that a request needs when it begins, and that those in progress need for their next token.
  double room_of(const Request& r) const { return bytes(1, loop_.reserves ? r.input + r.output : r.context() + 1); }
  double room_taken() const { return bytes(answering(), loop_.reserves ? reserved_ : context_ + answering()); }

  // Takes tokens of waiting prompts into a pass, in order; `begun`: the requests whose prompts are complete with it.
  // Returns the number of tokens.
  std::int64_t take_prompts(std::vector<Request>& begun) {
    std::int64_t room = std::max<std::int64_t>(1, loop_.pass_tokens - (loop_.mixes ? answering() : 0)), taken = 0;
    double cache = loop_.cache_bytes - room_taken();
    while (!waiting_.empty() && room > 0 && answering() + std::ssize(begun) < loop_.sequences) {
      Request& next = waiting_.front();
      if (room_of(next) > cache) break;
      const std::int64_t part = std::min(room, next.left);
      next.left -= part;
      room -= part;
      taken += part;
      if (next.left > 0) break;
      cache -= room_of(next);
      begun.push_back(next);
      waiting_.pop_front();
    }
    return taken;
  }

  void pass() {
    std::vector<Request> begun;
    const std::int64_t prompts = take_prompts(begun);
    if (prompts == 0) put_off();
    const auto sequences = static_cast<double>(answering());
    const double context = answering() == 0 ? 0 : static_cast<double>(context_) / sequences;
    const bool answers = answering() > 0 && (prompts == 0 || loop_.mixes);
    double pass_s = 0, launch_s = 0;
    if (prompts == 0) {
      pass_s = times_.decode(sequences, context);
      ++unpolled_;
    } else {
      unpolled_ = loop_.poll_passes;
      const double tokens = static_cast<double>(prompts) + (answers ? sequences : 0);
      pass_s = times_.prompt(tokens);
      if (answers) pass_s += times_.attention(sequences, context);
      launch_s = std::max(0.0, times_.launch(tokens) - (loop_.overlaps ? host_free_s_ : 0));
      pass_s = std::max(pass_s, launch_s);
    }
    now_ += pass_s;
    host_free_s_ = pass_s - launch_s;
    ++all_passes_;
    if (answers) end_answers();
    for (Request& r : begun) begin_answer(r);
  }

  // Puts off the requests that would end last, until the next token of every other one has room.
  void put_off() {
    while (!loop_.reserves && answering() > 1 && room_taken() > loop_.cache_bytes) {
      const auto last = std::prev(answers_.end());
      Request r = last->second;
      r.answered = r.output - (last->first - passes_);
      r.left = r.context();
      context_ -= r.context();
      answers_.erase(last);
      waiting_.push_front(r);
    }
  }

  // Every request in progress has got a token.
  void end_answers() {
    ++passes_;
    context_ += answering();
    for (auto it = answers_.begin(); it != answers_.end() && it->first == passes_; it = answers_.erase(it)) {
      const Request& r = it->second;
      context_ -= r.input + r.output;
      reserved_ -= r.input + r.output;
      end(r);
    }
  }

  // A pass over a prompt makes a token too.
  void begin_answer(Request& r) {
    if (r.first_s < 0) r.first_s = now_;
    ++r.answered;
    if (r.answered >= r.output) return end(r);
    context_ += r.context();
    reserved_ += r.input + r.output;
    answers_.insert({passes_ + r.output - r.answered, r});
  }

  // Clients see the first token with the piece of the answer that it is streamed in.
  void end(const Request& r) {
    const double after_first = static_cast<double>(std::max<std::int64_t>(1, r.output - 1));
    const double token_s = (now_ - r.first_s) / after_first;
    const double first_piece_s = static_cast<double>(std::min(loop_.stream_tokens, r.output) - 1) * token_s;
    sums_.first_token_s += r.first_s - r.sent_s + first_piece_s;
    sums_.token_s += token_s - first_piece_s / after_first;
    ++ended_;
    sums_.tokens += r.output;
    send();
  }

  std::int64_t answering() const { return std::ssize(answers_); }

  const ClosedLoop& loop_;
  const PassTimes& times_;
  std::deque<Request> sent_requests_;  // that the stack has not looked for yet
  std::int64_t all_passes_ = 0;
  double host_free_s_ = 0;     // of the pass before, after the host had launched it
  std::int64_t unpolled_ = 0;  // passes of answers since it looked
  std::deque<Request> waiting_;
  std::multimap<std::int64_t, Request> answers_;  // by the number of passes with answers after which they end
  double now_ = 0;
  std::int64_t context_ = 0, reserved_ = 0;  // tokens in the cache, and tokens that requests in progress may have there
  std::int64_t passes_ = 0, sent_ = 0, ended_ = 0;
  LoopFigures sums_;  // over requests
};

}  // namespace

LoopFigures play(const ClosedLoop& loop, const PassTimes& times) { return Loop(loop, times).play(); }

}  // namespace orrery
