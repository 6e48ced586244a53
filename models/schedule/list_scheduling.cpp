#include "models/schedule/list_scheduling.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <deque>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "models/schedule/order_length.h"

namespace orrery {
namespace {

using Orders = std::vector<std::vector<Action>>;

constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();
// An exchange among all stages is assumed to take 1 / kExchanges of the time of a micro-batch's work on one stage, so
// that work of other micro-batches hides the exchange.
constexpr std::int64_t kExchanges = 20;
// The greatest number of micro-batches by which token lookups run ahead of the forwards of the first virtual stage.
constexpr std::int64_t kWordsAhead = 2;

// The passes that every stage runs for a vocabulary that is sharded over all pipeline stages: token lookups, logits,
// and the gradients of both. They are listed in order of priority: passes that other passes wait for come first.
enum VocabularyPass : std::uint8_t { kWords, kLogits, kLogitsGradient, kWordsGradient };
constexpr std::size_t kVocabularyPasses = 4;

// Returns the orders with `forwards` more forwards before each action that is not a forward.
Orders later(const Orders& orders, std::int64_t forwards) {
  Orders result;
  for (const auto& order : orders) {
    std::vector<Action> first;
    // the actions that are no forwards, each with the number of forwards that it comes after
    std::deque<std::pair<std::int64_t, Action>> others;
    for (const Action& a : order) {
      if (a.phase == Phase::forward)
        first.push_back(a);
      else
        others.emplace_back(std::ssize(first) + forwards, a);
    }
    result.emplace_back();
    for (std::size_t i = 0; i < first.size(); ++i) {
      result.back().push_back(first[i]);
      for (; !others.empty() && others.front().first <= static_cast<std::int64_t>(i + 1); others.pop_front())
        result.back().push_back(others.front().second);
    }
    for (const auto& [count, action] : others) result.back().push_back(action);
  }
  return result;
}

std::int64_t whole(const PhaseTimes& t) { return t.forward + t.input + t.weight; }

// Returns the time that a collective exchange among all stages, which share the vocabulary, is assumed to take.
// shape.times has `count` virtual stages and, after these, the two parts of the vocabulary (logits, token lookups).
std::int64_t exchange_gap(const ScheduleShape& shape, std::int64_t count) {
  std::int64_t gap = 0;
  for (std::int64_t k = 0; k < count; ++k) gap += whole(shape.times[k]);
  gap /= shape.stages;  // now the average time of one stage's work for a micro-batch
  return (gap + whole(shape.times[count]) + whole(shape.times[count + 1])) / kExchanges;
}

class FilledPlay {
 public:
  FilledPlay(const ScheduleShape& shape, ChunkPlacement placement, const Orders& orders, const OrderFilling& filling)
      : shape_(shape),
        places_(place_chunks(placement, shape)),
        count_(places_.virtual_stages()),
        filling_(filling),
        shares_(filling.barriers > 0 && shape.stages > 1),
        orders_(shares_ ? later(orders, filling.barriers * shape.chunks) : orders),
        stages_(orders.size()),
        ended_(2 * count_ * shape.micro_batches, kUnknown) {
    shape_.times.resize(count_ + 2);
    filled.resize(orders.size());
    for (auto& known : known_) known.assign(shape.micro_batches, kUnknown);
    for (auto& all : of_all_) all.assign(shape.micro_batches, {});
    std::fill_n(known_[kWords].begin(), std::min(kWordsAhead, shape.micro_batches), 0);
    place_of_.resize(orders.size());
    for (std::int64_t k = 0; k < count_; ++k) {
      place_of_[places_.stage_of[k]].resize(shape.chunks);
      place_of_[places_.stage_of[k]][places_.chunk_of[k]] = k;
    }
    gap_ = exchange_gap(shape_, count_);
  }

  // Runs the simulation. The stage with the earliest next decision decides next, so whatever other stages begin before
  // that time is known.
  void run() {
    for (std::size_t s = 0; s < stages_.size(); ++s) call(s, 0);
    while (!turns_.empty()) {
      const auto [time, s, number] = turns_.top();
      turns_.pop();
      if (number == stages_[s].turn) decide(s, time);
    }
    assert(all_done());
  }

  std::int64_t end() const {
    std::int64_t last = 0;
    for (const Stage& s : stages_) last = std::max(last, s.now);
    return last;
  }

  Orders filled;

 private:
  struct Stage {
    std::int64_t now = 0, alive = 0;
    std::int64_t until = 0;  // time at which the stage next decides which action to run
    // number of the stage's latest entry in turns_ (decisions to come); older entries are ignored
    std::int64_t turn = 0;
    std::size_t next = 0;
    std::deque<Action> weights;  // weight gradients that have not begun yet
    std::array<std::int64_t, kVocabularyPasses> micro_batch = {};
  };

  // Returns whether every action, every weight gradient and every pass of the vocabulary was begun on every stage.
  bool all_done() const {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const auto passed = [&](std::int64_t n) { return n == shape_.micro_batches; };
      const bool shared = !shares_ || std::all_of(stages_[s].micro_batch.begin(), stages_[s].micro_batch.end(), passed);
      if (stages_[s].next < orders_[s].size() || !stages_[s].weights.empty() || !shared) return false;
    }
    return true;
  }

  // Returns the position of a pass among the passes of a micro-batch: forward over all virtual stages, then backward.
  std::int64_t pass_index(std::size_t stage, const Action& a) const {
    const std::int64_t k = place_of_[stage][a.chunk];
    return a.phase == Phase::forward ? k : 2 * count_ - 1 - k;
  }
  std::size_t stage_at(std::int64_t place) const { return places_.stage_of[std::min(place, 2 * count_ - 1 - place)]; }
  std::int64_t& ended(std::int64_t place, std::int64_t i) { return ended_[i * 2 * count_ + place]; }

  // Returns the time when all stages have run a vocabulary pass for micro-batch i and every stage has the result;
  // kUnknown if some stage has not run it yet.
  std::int64_t everywhere(VocabularyPass pass, std::int64_t i) const {
    const auto& [stages, last] = of_all_[pass][i];
    return stages < stages_.size() ? kUnknown : last + gap_;
  }
  std::int64_t ready(std::size_t stage, const Action& a) {
    const std::int64_t place = pass_index(stage, a);
    if (shares_ && place == 0) return everywhere(kWords, a.micro_batch);
    if (shares_ && place == count_)
      return everywhere(filling_.barriers == 1 ? kLogits : kLogitsGradient, a.micro_batch);
    return place == 0 ? 0 : ended(place - 1, a.micro_batch);
  }

  void call(std::size_t index, std::int64_t time) {
    stages_[index].until = time;
    if (time != kUnknown) turns_.emplace(time, index, ++stages_[index].turn);
  }
  // Makes a stage decide again at `time`, because another stage has begun a pass whose result this stage may wait for.
  void wake(std::size_t index, std::int64_t time) {
    const std::int64_t at = shares_ ? std::max(stages_[index].now, time) : stages_[index].now;
    if (at < stages_[index].until) call(index, at);
  }

  // Returns the pass over the shared vocabulary that the stage can begin soonest, and the time at which it can. If it
  // can begin several of them by time `by`, the result is the first of these in order of priority.
  std::pair<std::int64_t, VocabularyPass> vocabulary_pass(const Stage& s, std::int64_t by) const {
    std::pair<std::int64_t, VocabularyPass> soonest = {kUnknown, kWords};
    for (std::size_t pass = 0; shares_ && pass < kVocabularyPasses; ++pass) {
      const std::int64_t i = s.micro_batch[pass];
      const std::int64_t time = i < shape_.micro_batches ? known_[pass][i] : kUnknown;
      const std::pair candidate = {std::max(time, by), static_cast<VocabularyPass>(pass)};
      if (time != kUnknown && candidate < soonest) soonest = candidate;
    }
    return soonest;
  }

  void decide(std::size_t index, std::int64_t time) {
    Stage& s = stages_[index];
    const auto [vocabulary, pass] = vocabulary_pass(s, time);
    if (vocabulary <= time) return share(index, pass, time);
    const bool more = s.next < orders_[index].size();
    const std::int64_t next = more ? ready(index, orders_[index][s.next]) : kUnknown;
    const bool full = more && orders_[index][s.next].phase == Phase::forward && s.alive >= filling_.most;
    const std::int64_t soonest = std::min(next, vocabulary);
    if (!s.weights.empty() && (full || soonest > time)) {
      const std::int64_t weight = shape_.times[place_of_[index][s.weights.front().chunk]].weight;
      const bool fits = full || soonest == kUnknown || 100 * (soonest - time) >= filling_.gap_percent * weight;
      if (fits) return fill(index, time, weight);
    }
    if (next > time && (shares_ || next == kUnknown)) return call(index, soonest);
    advance(index, std::max(time, next));
  }

  void fill(std::size_t index, std::int64_t time, std::int64_t weight) {
    Stage& s = stages_[index];
    const Action a = s.weights.front();
    s.weights.pop_front();
    --s.alive;
    begin(index, a, time, weight);
  }

  void advance(std::size_t index, std::int64_t time) {
    Stage& s = stages_[index];
    const Action a = orders_[index][s.next++];
    const PhaseTimes& t = shape_.times[place_of_[index][a.chunk]];
    const bool forward = a.phase == Phase::forward, split = a.phase == Phase::input_gradient;
    if (split) s.weights.push_back({Phase::weight_gradient, a.chunk, a.micro_batch});
    s.alive += forward ? 1 : split ? 0 : -1;
    begin(index, a, time, forward ? t.forward : t.input + (split ? 0 : t.weight));
    const std::int64_t place = pass_index(index, a);
    ended(place, a.micro_batch) = s.now;
    if (shares_ && place == 0 && a.micro_batch + kWordsAhead < shape_.micro_batches)
      announce(kWords, a.micro_batch + kWordsAhead, s.now);
    if (shares_ && place == count_ - 1) announce(kLogits, a.micro_batch, s.now + gap_);
    if (shares_ && place == 2 * count_ - 1) announce(kWordsGradient, a.micro_batch, s.now + gap_);
    if (place + 1 < 2 * count_) wake(stage_at(place + 1), s.now);
  }

  // Announces that every stage may run a vocabulary pass for micro-batch i from `time` on.
  void announce(VocabularyPass pass, std::int64_t i, std::int64_t time) {
    known_[pass][i] = time;
    for (std::size_t s = 0; s < stages_.size(); ++s) wake(s, time);
  }

  void share(std::size_t index, VocabularyPass pass, std::int64_t time) {
    Stage& s = stages_[index];
    const bool logits = pass == kLogits || pass == kLogitsGradient, forward = pass == kWords || pass == kLogits;
    const auto i = static_cast<std::int32_t>(s.micro_batch[pass]++);
    const auto chunk = static_cast<std::int32_t>(shape_.chunks + (logits ? 1 : 0));
    const PhaseTimes& t = shape_.times[count_ + (logits ? 0 : 1)];
    begin(index, {forward ? Phase::forward : Phase::backward, chunk, i}, time,
          forward ? t.forward : t.input + t.weight);
    auto& [stages, last] = of_all_[pass][i];
    last = std::max(last, s.now);
    if (++stages < stages_.size()) return;
    if (pass == kWords) wake(stage_at(0), last + gap_);
    if (pass == kLogits) announce(kLogitsGradient, i, last + gap_);
    if (pass == (filling_.barriers == 1 ? kLogits : kLogitsGradient)) wake(stage_at(count_), last + gap_);
  }

  void begin(std::size_t index, const Action& a, std::int64_t time, std::int64_t length) {
    stages_[index].now = time + length;
    filled[index].push_back(a);
    call(index, stages_[index].now);
  }

  ScheduleShape shape_;
  Schedule places_;  // the placement of virtual stages; it has no orders of actions
  std::int64_t count_;
  OrderFilling filling_;
  bool shares_;
  Orders orders_;
  std::vector<Stage> stages_;
  std::vector<std::int64_t> ended_;                  // end time of each pass, by micro-batch and pass_index
  std::vector<std::vector<std::int64_t>> place_of_;  // for each stage and chunk, the number of its virtual stage
  std::int64_t gap_ = 0;
  // for each vocabulary pass and micro-batch, the time from which the pass can begin
  std::array<std::vector<std::int64_t>, kVocabularyPasses> known_;
  std::array<std::vector<std::pair<std::size_t, std::int64_t>>, kVocabularyPasses>
      // for each vocabulary pass and micro-batch: number of stages that have run the pass, and end time of the last of
      // them
      of_all_;
  // an entry of turns_, the queue of the stages' next decisions: time of the decision, the stage, and number of the
  // entry (Stage::turn)
  using Turn = std::tuple<std::int64_t, std::size_t, std::int64_t>;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
};

}  // namespace

FilledOrders fill_orders(const ScheduleShape& shape, ChunkPlacement placement, const Orders& orders,
                         const OrderFilling& filling) {
  FilledPlay play(shape, placement, orders, filling);
  play.run();
  const std::int64_t end = play.end();
  return {std::move(play.filled), end};
}

Orders best_filled(const ScheduleShape& shape, ChunkPlacement placement, const Orders& orders,
                   const std::vector<OrderFilling>& ways) {
  Schedule places = place_chunks(placement, shape);
  ScheduleShape own = shape;
  own.times.resize(places.virtual_stages() + 2);
  places.barriers = shape.stages > 1 ? ways.front().barriers : 0;
  if (places.barriers > 0) {
    places.input_chunk = static_cast<std::int32_t>(shape.chunks);
    places.output_chunk = places.input_chunk + 1;
  }
  const std::int64_t gap = exchange_gap(own, places.virtual_stages());
  FilledOrders best = {{}, kUnknown};
  for (std::vector<PhaseTimes>& times : times_to_try(own)) {
    ScheduleShape other = own;
    other.times = std::move(times);
    for (const OrderFilling& way : ways) {
      FilledOrders filled = fill_orders(other, placement, orders, way);
      filled.end = order_length(places, filled.orders, own, gap);
      if (filled.end < best.end) best = std::move(filled);
    }
  }
  return best.orders;
}

}  // namespace orrery
