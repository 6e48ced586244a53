#include "sim/generate/serving_load.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include "models/base/random.h"
#include "sim/generate/serving_rank.h"

namespace orrery {
namespace {

class Server {
 public:
  Server(const ServingLoad& load, const PassTimes& times)
      : load_(load), times_(times), ranks_(static_cast<std::size_t>(load.data_ranks), ServingRank(load)) {}

  ServingFigures play() {
    const std::int64_t at_once = load_.requests_per_s > 0 ? load_.requests : load_.clients;
    for (std::int64_t i = 0; i < at_once; ++i) send(load_.requests_per_s > 0 ? next_arrival_s() : 0);
    while (ended_ < load_.requests) {
      poll();
      pass();
    }
    const auto n = static_cast<double>(load_.requests);
    return {sums_.first_token_s / n, sums_.token_s / n, now_, sums_.tokens};
  }

 private:
  static constexpr std::uint64_t kArrivalSeed = 1, kInputSeed = 2, kOutputSeed = 3;

  // Times between arrivals are drawn from an exponential distribution.
  double next_arrival_s() {
    arrival_s_ -= std::log1p(-uniform(kArrivalSeed, static_cast<std::uint64_t>(sent_))) / load_.requests_per_s;
    return arrival_s_;
  }

  // Lengths are drawn, as clients draw them: spread more evenly, answers would end more evenly too, and fewer prompts
  // would wait for others.
  static std::int64_t drawn(std::int64_t longest, double shortest, std::uint64_t seed, std::int64_t number) {
    const double share = uniform(seed, static_cast<std::uint64_t>(number));
    return std::max<std::int64_t>(1, std::llround(static_cast<double>(longest) * (shortest + (1 - shortest) * share)));
  }

  void send(double at_s) {
    if (sent_ == load_.requests) return;
    Request r = {.input = drawn(load_.input, load_.shortest, kInputSeed, sent_),
                 .output = drawn(load_.output, load_.shortest, kOutputSeed, sent_),
                 .sent_s = at_s};
    tokenised_s_ = std::max(tokenised_s_, at_s) + static_cast<double>(r.input) * load_.tokenise_s;
    r.ready_s = tokenised_s_;
    r.passes = 1 + static_cast<std::int64_t>(std::ceil(static_cast<double>(r.output - 1) / load_.tokens_a_pass));
    r.left = r.input;
    sent_requests_.push_back(r);
    ++sent_;
  }

  bool is_idle() const {
    return std::ranges::all_of(ranks_, [](const ServingRank& r) { return r.answering() == 0 && r.waiting() == 0; });
  }

  // Hands what was sent to the data ranks, if it is time to look.
  void poll() {
    const bool idle = is_idle();
    if (idle) now_ = std::max(now_, sent_requests_.front().ready_s);
    if (unpolled_ < load_.poll_passes && !idle) return;
    unpolled_ = 0;
    // A stack that overlaps has launched the next pass already when the one before began.
    const double seen_s = load_.overlaps && !idle ? pass_begin_s_ : now_;
    while (!sent_requests_.empty() && sent_requests_.front().ready_s <= seen_s) {
      const auto requests = [](const ServingRank& r) { return r.answering() + r.waiting(); };
      std::ranges::min_element(ranks_, {}, requests)->add(sent_requests_.front());
      sent_requests_.pop_front();
    }
    if (idle) host_free_s_ = 0;
  }

  // Returns whether prompts wait for those of other data ranks.
  bool waits_for_ranks() {
    if (load_.balance_passes == 0) return false;
    const bool all_begin = std::ranges::all_of(ranks_, &ServingRank::can_begin);
    const bool all_answer = std::ranges::all_of(ranks_, [](const ServingRank& r) { return r.answering() > 0; });
    if (!all_begin && ++unbalanced_ < load_.balance_passes && all_answer) return true;
    unbalanced_ = 0;
    return false;
  }

  // Share is what one data rank has of a pass.
  struct Share {
    std::int64_t prompts = 0;  // tokens
    double sequences = 0, context = 0;
    bool answers = false;
  };

  double seconds(const std::vector<Share>& shares, bool prompts) {
    double pass_s = 0, most = 0, sum = 0;
    for (const Share& s : shares) {
      if (!prompts) {
        pass_s = std::max(pass_s, times_.decode(s.sequences, s.context));
        continue;
      }
      const double checked = s.answers ? s.sequences * static_cast<double>(load_.checked_tokens) : 0;
      const double tokens = static_cast<double>(s.prompts) + checked;
      const double attention_s = s.answers ? times_.attention(s.sequences, s.context) : 0;
      pass_s = std::max(pass_s, times_.prompt(tokens) + attention_s);
      most = std::max(most, tokens);
      sum += tokens;
    }
    // Experts have the tokens of all data ranks, so that they do not wait for the fullest one's.
    if (prompts) pass_s -= times_.experts(most) - times_.experts(sum / static_cast<double>(shares.size()));
    const double launch_s = prompts ? std::max(0.0, times_.launch(most) - (load_.overlaps ? host_free_s_ : 0)) : 0;
    pass_s = std::max(pass_s, launch_s);
    host_free_s_ = pass_s - launch_s;
    return pass_s;
  }

  void pass() {
    std::vector<Share> shares(ranks_.size());
    bool prompts = false;
    if (!waits_for_ranks()) {
      for (std::size_t r = 0; r < ranks_.size(); ++r) prompts |= (shares[r].prompts = ranks_[r].take_prompts()) > 0;
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (shares[r].prompts == 0) ranks_[r].put_off();
      shares[r].sequences = static_cast<double>(ranks_[r].answering());
      shares[r].context = ranks_[r].context();
      shares[r].answers = shares[r].sequences > 0 && (load_.mixes || shares[r].prompts == 0);
    }
    unpolled_ = prompts ? load_.poll_passes : unpolled_ + 1;
    pass_begin_s_ = now_;
    now_ += seconds(shares, prompts);
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (const Request& ended : ranks_[r].end_pass(shares[r].answers, now_)) end(ended);
    }
  }

  // Clients see the first token with the piece of the answer that it is streamed in.
  void end(const Request& r) {
    const double answer_s = now_ - r.first_s, passes = static_cast<double>(std::max<std::int64_t>(1, r.passes - 1));
    const double piece_s = static_cast<double>(std::min(load_.stream_passes, r.passes) - 1) * answer_s / passes;
    sums_.first_token_s += r.first_s - r.sent_s + piece_s;
    sums_.token_s += (answer_s - piece_s) / static_cast<double>(std::max<std::int64_t>(1, r.output - 1));
    ++ended_;
    sums_.tokens += r.output;
    send(now_);
  }

  const ServingLoad& load_;
  const PassTimes& times_;
  std::vector<ServingRank> ranks_;
  std::deque<Request> sent_requests_;  // that the stack has not looked for yet
  double now_ = 0, pass_begin_s_ = 0;  // pass_begin_s_: of the last pass
  double arrival_s_ = 0;               // of the last request, where they come at random
  double tokenised_s_ = 0;             // when the last request sent has been turned into tokens
  double host_free_s_ = 0;             // of the pass before, after the host had launched it
  std::int64_t unpolled_ = 0;          // passes of answers since the stack looked for requests
  std::int64_t unbalanced_ = 0;        // passes since all data ranks had prompts that could begin
  std::int64_t sent_ = 0, ended_ = 0;
  ServingFigures sums_;  // over requests
};

}  // namespace

ServingFigures play(const ServingLoad& load, const PassTimes& times) { return Server(load, times).play(); }

}  // namespace orrery
