#include "sim/generate/serving_rank.h"

#include <algorithm>
#include <cmath>

namespace orrery {

// Tokens of a request in the cache after so many passes of its answer.
double ServingRank::tokens_after(const Request& r, std::int64_t passes) const {
  const double answered = passes == 0 ? 0 : 1 + static_cast<double>(passes - 1) * load_->tokens_a_pass;
  return static_cast<double>(r.input) + answered;
}

// Room in the cache that a request needs when it begins, and that those in progress need for their next tokens.
double ServingRank::room_of(const Request& r) const {
  const double tokens = load_->reserves ? static_cast<double>(r.input + r.output) : tokens_after(r, r.answered + 1);
  return load_->state_bytes + tokens * load_->token_bytes;
}

double ServingRank::room_taken() const {
  const auto n = static_cast<double>(answering());
  return n * load_->state_bytes +
         (load_->reserves ? reserved_ : context_ + n * load_->tokens_a_pass) * load_->token_bytes;
}

bool ServingRank::can_begin() const {
  return !waiting_.empty() && has_slot() && room_of(waiting_.front()) <= load_->cache_bytes - room_taken();
}

double ServingRank::context() const { return answers_.empty() ? 0 : context_ / static_cast<double>(answering()); }

std::int64_t ServingRank::take_prompts() {
  const std::int64_t beside = load_->mixes ? answering() * load_->checked_tokens : 0;
  std::int64_t room = std::max<std::int64_t>(1, load_->pass_tokens - beside), taken = 0;
  double cache = load_->cache_bytes - room_taken();
  while (!waiting_.empty() && room > 0 && has_slot()) {
    Request& next = waiting_.front();
    if (room_of(next) > cache || (!load_->cuts_prompts && taken > 0 && next.left > room)) break;
    const std::int64_t part = load_->cuts_prompts ? std::min(room, next.left) : next.left;
    next.left -= part;
    room -= part;
    taken += part;
    if (next.left > 0) break;
    cache -= room_of(next);
    begun_.push_back(next);
    waiting_.pop_front();
  }
  return taken;
}

void ServingRank::put_off() {
  while (!load_->reserves && answering() > 1 && room_taken() > load_->cache_bytes) {
    const auto last = std::prev(answers_.end());
    Request r = last->second;
    r.answered = r.passes - (last->first - passes_);
    const double tokens = tokens_after(r, r.answered);
    r.left = std::llround(tokens);
    context_ -= tokens;
    answers_.erase(last);
    waiting_.push_front(r);
  }
}

std::vector<Request> ServingRank::end_pass(bool answers, double now_s) {
  std::vector<Request> ended;
  if (answers) {
    ++passes_;
    context_ += static_cast<double>(answering()) * load_->tokens_a_pass;
    for (auto it = answers_.begin(); it != answers_.end() && it->first == passes_; it = answers_.erase(it)) {
      context_ -= tokens_after(it->second, it->second.passes);
      reserved_ -= static_cast<double>(it->second.input + it->second.output);
      ended.push_back(it->second);
    }
    if (answers_.empty()) context_ = reserved_ = 0;  // sums of fractions may leave a rest
  }
  for (Request& r : begun_) {
    if (r.first_s < 0) r.first_s = now_s;
    if (++r.answered >= r.passes) {
      ended.push_back(r);
      continue;
    }
    context_ += tokens_after(r, r.answered);
    reserved_ += static_cast<double>(r.input + r.output);
    answers_.insert({passes_ + r.passes - r.answered, r});
  }
  begun_.clear();
  return ended;
}

}  // namespace orrery
