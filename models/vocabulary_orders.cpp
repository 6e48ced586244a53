#include "models/vocabulary_orders.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include "models/units.h"

namespace orrery {
namespace {

// Passes of a stage, by chunk: layers, lookups, logits.
enum Pass : std::uint8_t { kForward, kBackward, kWords, kWordsGradient, kLogits, kLogitsGradient };
constexpr std::size_t kPasses = 6;
using Times = std::array<std::int64_t, kPasses>;

constexpr std::int64_t kShifts = 4;      // patterns begin later by so many steps between the least and the most
constexpr std::int64_t kExchanges = 20;  // what stages exchange is given this part of a period, to hide

bool is_forward(std::size_t pass) { return pass == kForward || pass == kWords || pass == kLogits; }

// Lengths of the passes; of stages that differ, the slowest's.
Times lengths_of(const ScheduleShape& shape) {
  std::vector<PhaseTimes> times = shape.times;
  times.resize(shape.stages + 2);
  Times lengths = {};
  for (std::int64_t i = 0; i < shape.stages + 2; ++i) {
    const std::size_t chunk = i < shape.stages ? 0 : i == shape.stages ? 2 : 1;
    lengths[2 * chunk] = std::max(lengths[2 * chunk], times[i].forward);
    lengths[2 * chunk + 1] = std::max(lengths[2 * chunk + 1], times[i].input + times[i].weight);
  }
  return lengths;
}

// When the passes of the first micro-batch begin on every stage; those of the next a period later.
class Pattern {
 public:
  // places: of the passes in a period of the first stage; each stage's begins `shift` after the one before it.
  Pattern(const Times& lengths, const Times& places, std::int64_t period, std::int64_t shift, std::int64_t stages,
          std::int64_t barriers)
      : lengths_(lengths), places_(places), period_(period), shift_(shift), gap_(period / kExchanges), begin_(stages) {
    const std::int64_t last = stages - 1;
    for (std::int64_t s = 0; s < stages; ++s) begin_[s][kForward] = s * shift;
    const std::int64_t before = begin_[0][kForward] - gap_ - lengths[kWords];
    for (std::int64_t s = 0; s < stages; ++s) begin_[s][kWords] = soonest(s, kWords, before - period + 1);
    everywhere(kLogits, end(last, kForward) + gap_);
    everywhere(kLogitsGradient, last_end(kLogits) + gap_);
    begin_[last][kBackward] = soonest(last, kBackward, last_end(barriers == 1 ? kLogits : kLogitsGradient) + gap_);
    for (std::int64_t s = last; s-- > 0;) begin_[s][kBackward] = soonest(s, kBackward, end(s + 1, kBackward));
    everywhere(kWordsGradient, end(0, kBackward) + gap_);
    for (std::int64_t s = 0; s < stages; ++s) {
      const std::int64_t alive = ceil_div(end(s, kBackward) - begin_[s][kForward], period);
      too_many_ = std::max(too_many_, alive - (stages - s + barriers));
      logits_wait_ += begin_[s][kLogitsGradient] - begin_[s][kLogits];
    }
  }

  // Shorter is better: what it keeps beyond the paper's counts, the way of a micro-batch, how long logits live.
  std::tuple<std::int64_t, std::int64_t, std::int64_t> cost() const {
    return {too_many_, begin_[0][kBackward], logits_wait_};
  }

  const std::vector<Times>& begins() const { return begin_; }  // by stage

 private:
  std::int64_t end(std::int64_t stage, Pass pass) const { return begin_[stage][pass] + lengths_[pass]; }
  std::int64_t last_end(Pass pass) const {
    std::int64_t last = 0;
    for (std::size_t s = 0; s < begin_.size(); ++s) last = std::max(last, begin_[s][pass] + lengths_[pass]);
    return last;
  }
  // The stage's next place of a pass from a time on.
  std::int64_t soonest(std::int64_t stage, Pass pass, std::int64_t time) const {
    const std::int64_t place = stage * shift_ + places_[pass], late = (time - place) % period_;
    return late == 0 ? time : time - late + (late > 0 ? period_ : 0);
  }
  void everywhere(Pass pass, std::int64_t time) {
    for (std::size_t s = 0; s < begin_.size(); ++s) begin_[s][pass] = soonest(static_cast<std::int64_t>(s), pass, time);
  }

  Times lengths_, places_;
  std::int64_t period_, shift_, gap_;
  std::vector<Times> begin_;
  std::int64_t too_many_ = 0, logits_wait_ = 0;
};

Pattern best_pattern(const Times& lengths, std::int64_t stages, std::int64_t barriers) {
  std::int64_t period = 0;
  for (const std::int64_t length : lengths) period += length;
  const std::int64_t others = period - lengths[kForward] - lengths[kBackward];
  std::array<Pass, kPasses - 1> rest = {kBackward, kWords, kWordsGradient, kLogits, kLogitsGradient};
  std::optional<Pattern> best;
  do {
    Times places = {};
    std::int64_t at = lengths[kForward];
    for (const Pass pass : rest) {
      places[pass] = at;
      at += lengths[pass];
    }
    for (std::int64_t i = 0; i <= kShifts; ++i) {
      Pattern p(lengths, places, period, lengths[kForward] + others * i / kShifts, stages, barriers);
      if (!best || p.cost() < best->cost()) best.emplace(std::move(p));
    }
  } while (std::next_permutation(rest.begin(), rest.end()));
  return *best;
}

}  // namespace

std::vector<std::vector<Action>> vocabulary_orders(const ScheduleShape& shape, std::int64_t barriers) {
  const Times lengths = lengths_of(shape);
  std::int64_t period = 0;
  for (const std::int64_t length : lengths) period += length;
  std::vector<std::vector<Action>> orders;
  const Pattern pattern = best_pattern(lengths, shape.stages, barriers);
  for (const Times& begin : pattern.begins()) {
    std::vector<std::pair<std::int64_t, Action>> timed;
    for (std::int32_t i = 0; i < shape.micro_batches; ++i) {
      for (std::size_t pass = 0; pass < kPasses; ++pass) {
        const Phase phase = is_forward(pass) ? Phase::forward : Phase::backward;
        timed.push_back({begin[pass] + i * period, {phase, static_cast<std::int32_t>(pass / 2), i}});
      }
    }
    std::sort(timed.begin(), timed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    orders.emplace_back();
    for (const auto& [time, action] : timed) orders.back().push_back(action);
  }
  return orders;
}

}  // namespace orrery
