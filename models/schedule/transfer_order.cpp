#include "models/schedule/transfer_order.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {
namespace {

struct Key {
  std::int32_t boundary, micro_batch;
  bool forward;
  auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr)
};

class Replay {
 public:
  Replay(const Schedule& schedule, const std::vector<PhaseTimes>& times)
      : schedule_(schedule), times_(times), virtual_stages_(static_cast<std::int32_t>(schedule.virtual_stages())) {
    virtual_stage_.resize(schedule.order.size());
    for (std::int32_t k = 0; k < static_cast<std::int32_t>(schedule.stage_of.size()); ++k) {
      auto& row = virtual_stage_[schedule.stage_of[k]];
      row.resize(std::max<std::size_t>(row.size(), schedule.chunk_of[k] + 1));
      row[schedule.chunk_of[k]] = k;
    }
    ends_.resize(schedule.order.size());
  }

  TransferOrder run() {
    bool progress = true;
    while (progress) {
      progress = false;
      for (std::size_t s = 0; s < ends_.size(); ++s) {
        while (advance(s)) progress = true;
      }
    }
    TransferOrder transfer_order(ends_.size());
    for (std::size_t s = 0; s < ends_.size(); ++s) {
      require_finished(s);
      transfer_order[s] = turns_of(s);
    }
    return transfer_order;
  }

 private:
  bool is_first(std::int32_t place) const { return place % virtual_stages_ == 0; }
  bool is_last(std::int32_t place) const { return (place + 1) % virtual_stages_ == 0; }
  std::int32_t virtual_stage(std::size_t s, const Action& a) const { return virtual_stage_[s][a.chunk]; }

  std::int32_t places() const { return static_cast<std::int32_t>(schedule_.stage_of.size()); }
  // Returns the key of an exchange among all stages for a micro-batch. The first number of a key says which boundary
  // between virtual stages a transfer crosses; for an exchange it is a number above those of all boundaries.
  Key exchange(StageExchange what, const Action& a) const {
    return {places() + 1 + static_cast<std::int32_t>(what), a.micro_batch, true};
  }
  bool is_exchange(const Key& key) const { return key.boundary > places(); }
  StageExchange exchange_of(const Key& key) const { return static_cast<StageExchange>(key.boundary - places() - 1); }
  std::optional<Key> if_shared(StageExchange what, const Action& a) const {
    return schedule_.spreads_vocabulary() ? std::optional(exchange(what, a)) : std::nullopt;
  }

  // input_of returns the key of the data that an action needs from another virtual stage or from all stages, output_of
  // the key of the data that it produces for them; nothing if there is no such data.
  std::optional<Key> input_of(std::size_t s, const Action& a) const {
    const bool forward = a.phase == Phase::forward;
    if (a.chunk == schedule_.input_chunk)
      return forward ? std::nullopt : std::optional(exchange(StageExchange::embedding_gradients, a));
    if (a.chunk == schedule_.output_chunk)
      return exchange(forward ? StageExchange::hidden_states : StageExchange::sums, a);
    const std::int32_t k = virtual_stage(s, a);
    if (forward) return is_first(k) ? if_shared(StageExchange::token_embeddings, a) : Key{k - 1, a.micro_batch, true};
    if (a.phase == Phase::weight_gradient) return std::nullopt;
    return is_last(k) ? if_shared(StageExchange::hidden_gradients, a) : Key{k, a.micro_batch, false};
  }
  std::optional<Key> output_of(std::size_t s, const Action& a) const {
    const bool forward = a.phase == Phase::forward;
    if (a.chunk == schedule_.input_chunk)
      return forward ? std::optional(exchange(StageExchange::token_embeddings, a)) : std::nullopt;
    if (a.chunk == schedule_.output_chunk) return logits_output(a);
    const std::int32_t k = virtual_stage(s, a);
    if (forward) return is_last(k) ? if_shared(StageExchange::hidden_states, a) : Key{k, a.micro_batch, true};
    if (a.phase == Phase::weight_gradient) return std::nullopt;
    return is_first(k) ? if_shared(StageExchange::embedding_gradients, a) : Key{k - 1, a.micro_batch, false};
  }
  // Returns the key of the exchange among all stages to which a pass over the logits contributes: a forward to the sums
  // of the loss, a backward to the sum of the hidden states' gradients. With one barrier a backward contributes to no
  // exchange, because the sum of these gradients follows the sums of the loss immediately.
  std::optional<Key> logits_output(const Action& a) const {
    if (a.phase == Phase::forward) return exchange(StageExchange::sums, a);
    return schedule_.barriers > 1 ? std::optional(exchange(StageExchange::hidden_gradients, a)) : std::nullopt;
  }

  // Records the time at which the data with this key was produced: a tensor that one virtual stage sends to another, or
  // an exchange among all stages. An exchange to which all stages contribute is produced when the last stage has
  // contributed.
  void produce(const Key& key, std::int64_t time) {
    const auto what = exchange_of(key);
    const bool of_all =
        is_exchange(key) && what != StageExchange::hidden_states && what != StageExchange::embedding_gradients;
    if (of_all) {
      auto& [count, last] = parts_[key];
      last = std::max(last, time);
      if (++count < schedule_.order.size()) return;
      time = last;
    }
    produced_[key] = time;
    if (is_exchange(key) && what == StageExchange::sums && schedule_.barriers == 1)
      produced_[{key.boundary + 1, key.micro_batch, true}] = time;
  }

  std::int64_t length_of(std::size_t s, const Action& a) const {
    if (times_.empty()) return a.phase == Phase::backward ? 2 : 1;
    const bool embeds = schedule_.spreads_vocabulary() && a.chunk == schedule_.input_chunk;
    const bool logits = schedule_.spreads_vocabulary() && a.chunk == schedule_.output_chunk;
    const std::int32_t k = logits ? virtual_stages_ : embeds ? virtual_stages_ + 1 : virtual_stage(s, a);
    const PhaseTimes& t = times_[static_cast<std::size_t>(k)];
    if (a.phase == Phase::forward) return t.forward;
    return a.phase == Phase::input_gradient    ? t.input
           : a.phase == Phase::weight_gradient ? t.weight
                                               : t.input + t.weight;
  }

  bool crosses(const Key& key) const {
    return !is_exchange(key) && hop(schedule_, static_cast<std::size_t>(key.boundary)) != 0;
  }

  bool advance(std::size_t s) {
    std::vector<std::int64_t>& ends = ends_[s];
    if (ends.size() == schedule_.order[s].size()) return false;
    const std::size_t first = ends.size();
    std::size_t last = first;  // index of the last action that is overlapped with action `first`
    while (schedule_.order[s][last].woven) ++last;
    std::int64_t end = ends.empty() ? 0 : ends.back();
    for (std::size_t i = first; i <= last; ++i) {
      const auto input = input_of(s, schedule_.order[s][i]);
      const auto it = input ? produced_.find(*input) : produced_.end();
      if (input && it == produced_.end()) return false;
      if (input) end = std::max(end, it->second);
    }
    for (std::size_t i = first; i <= last; ++i) end += length_of(s, schedule_.order[s][i]);
    for (std::size_t i = first; i <= last; ++i) {
      ends.push_back(end);
      if (const auto output = output_of(s, schedule_.order[s][i])) produce(*output, end);
    }
    return true;
  }

  void require_finished(std::size_t s) const {
    const std::size_t i = ends_[s].size();
    if (i == schedule_.order[s].size()) return;
    const Action& a = schedule_.order[s][i];
    throw Error(fmt::format("schedule: deadlock: stage {} waits for ever before {}{} of chunk {}", s,
                            letter_of(a.phase), a.micro_batch, a.chunk));
  }

  // Returns the sort key of a transfer and its time. Sender and receiver order transfers of the same time by the same
  // key, so that they cannot block each other even if a software stack does not batch transfers.
  static std::tuple<std::int64_t, std::int32_t, bool, std::int32_t> rank_of(
      const std::pair<std::int64_t, StageTransfer>& c) {
    return {c.first, c.second.boundary, c.second.forward, c.second.micro_batch};
  }

  // Adds the moves of activations (BPipe) that stage s sends or receives. The time of a move to the partner stage, or
  // back, is the end of the action before the move on the stage that the activations belong to; among transfers of the
  // same time, moves come last.
  void add_moves(std::int32_t s, std::vector<std::pair<std::int64_t, StageTransfer>>& all) const {
    for (std::size_t i = 0; i < schedule_.moves.size(); ++i) {
      const Eviction& m = schedule_.moves[i];
      if (m.stage != s && m.partner != s) continue;
      const std::vector<std::int64_t>& ends = ends_[m.stage];
      const auto move = static_cast<std::int32_t>(i);
      const auto transfer = [&](bool away) {
        return StageTransfer{virtual_stages_, m.micro_batch, away, away == (m.stage == s), false, move};
      };
      all.emplace_back(ends[m.leaves], transfer(true));
      all.emplace_back(ends[m.returns - 2], transfer(false));
    }
  }

  // Returns a stage's transfers as one list for each of its actions. A transfer whose data is produced at time T is in
  // the list of the first action that ends after T, and is issued before this action.
  std::vector<std::vector<StageTransfer>> turns_of(std::size_t s) const {
    std::vector<std::pair<std::int64_t, StageTransfer>> all;
    for (const Action& a : schedule_.order[s]) {
      const auto in = input_of(s, a), out = output_of(s, a);
      if (in && crosses(*in)) all.push_back({produced_.at(*in), {in->boundary, in->micro_batch, in->forward, false}});
      if (out && crosses(*out))
        all.push_back({produced_.at(*out), {out->boundary, out->micro_batch, out->forward, true}});
    }
    add_moves(static_cast<std::int32_t>(s), all);
    for (const auto& [key, time] : produced_) {
      const auto what = exchange_of(key);
      if (is_exchange(key)) all.push_back({time, {key.boundary, key.micro_batch, true, true, false, -1, what}});
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return rank_of(a) < rank_of(b); });
    std::vector<std::vector<StageTransfer>> transfer_order(ends_[s].size() + 1);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto plain = [&](std::size_t at) {
        return all[at].second.move < 0 && all[at].second.exchange == StageExchange::none;
      };
      const bool alike = i > 0 && plain(i) && plain(i - 1);
      all[i].second.joins_previous = alike && all[i].first == all[i - 1].first;
      const auto turn = std::upper_bound(ends_[s].begin(), ends_[s].end(), all[i].first) - ends_[s].begin();
      transfer_order[turn].push_back(all[i].second);
    }
    return transfer_order;
  }

  const Schedule& schedule_;
  const std::vector<PhaseTimes>& times_;
  std::int32_t virtual_stages_;  // number of virtual stages of one copy of the model
  std::vector<std::vector<std::int32_t>> virtual_stage_;
  std::vector<std::vector<std::int64_t>> ends_;  // for each stage, the end times of the actions replayed so far
  std::map<Key, std::int64_t> produced_;
  // for each exchange: number of stages that have contributed so far, and the time of the last contribution
  std::map<Key, std::pair<std::size_t, std::int64_t>> parts_;
};

}  // namespace

TransferOrder order_transfers(const Schedule& schedule, const std::vector<PhaseTimes>& times) {
  return Replay(schedule, times).run();
}

}  // namespace orrery
