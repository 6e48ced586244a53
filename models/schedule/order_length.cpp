#include "models/schedule/order_length.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

namespace orrery {
namespace {

constexpr std::int64_t kNotYetKnown = std::numeric_limits<std::int64_t>::max();
// The greatest number of actions of an order, on all stages together, for which several candidate times are tried.
constexpr std::int64_t kMostActions = 1 << 14;

class Length {
 public:
  Length(const Schedule& places, const std::vector<std::vector<Action>>& orders, const ScheduleShape& shape,
         std::int64_t gap)
      : places_(places),
        orders_(orders),
        times_(shape.times),
        micro_batches_(shape.micro_batches),
        count_(places.virtual_stages()),
        gap_(gap),
        now_(orders.size(), 0),
        next_(orders.size(), 0),
        place_of_(orders.size()) {
    times_.resize(count_ + 2);
    for (auto& ended : ended_) ended.assign(count_ * micro_batches_, kNotYetKnown);
    for (auto& shared : shared_) shared.assign(micro_batches_, {});
    for (std::int64_t k = 0; k < count_; ++k) {
      auto& row = place_of_[places.stage_of[k]];
      row.resize(std::max<std::size_t>(row.size(), places.chunk_of[k] + 1));
      row[places.chunk_of[k]] = k;
    }
  }

  std::int64_t play() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < orders_.size(); ++s) {
        while (next_[s] < orders_[s].size() && advance(s)) moved = true;
      }
    }
    for (std::size_t s = 0; s < orders_.size(); ++s) {
      if (next_[s] < orders_[s].size()) return kNotYetKnown;
    }
    return *std::max_element(now_.begin(), now_.end());
  }

 private:
  // How many stages have run a pass over the vocabulary that all stages share (token lookups or logits of one
  // micro-batch), and the time when the last of these stages ended it.
  struct OfAll {
    std::size_t stages = 0;
    std::int64_t last = 0;
  };

  bool is_words(const Action& a) const { return places_.spreads_vocabulary() && a.chunk == places_.input_chunk; }
  bool is_logits(const Action& a) const { return places_.spreads_vocabulary() && a.chunk == places_.output_chunk; }

  std::int64_t& ended(bool forward, std::int64_t k, std::int64_t i) {
    return ended_[forward ? 0 : 1][k * micro_batches_ + i];
  }
  OfAll& of_all(bool logits, bool forward, std::int64_t i) {
    return shared_[2 * (logits ? 1 : 0) + (forward ? 0 : 1)][i];
  }

  std::int64_t behind(std::int64_t time) const { return time == kNotYetKnown ? kNotYetKnown : time + gap_; }
  std::int64_t everywhere(const OfAll& all) const {
    return all.stages < orders_.size() ? kNotYetKnown : all.last + gap_;
  }

  std::int64_t ready(std::size_t s, const Action& a) {
    const bool forward = a.phase == Phase::forward, shares = places_.spreads_vocabulary();
    const std::int64_t i = a.micro_batch;
    if (is_words(a)) return forward ? 0 : behind(ended(false, 0, i));
    if (is_logits(a)) return forward ? behind(ended(true, count_ - 1, i)) : everywhere(of_all(true, true, i));
    if (a.phase == Phase::weight_gradient) return 0;
    const std::int64_t k = place_of_[s][a.chunk];
    if (forward) return k > 0 ? ended(true, k - 1, i) : shares ? everywhere(of_all(false, true, i)) : 0;
    if (k + 1 < count_) return ended(false, k + 1, i);
    return shares ? everywhere(of_all(true, places_.barriers == 1, i)) : ended(true, k, i);
  }

  bool advance(std::size_t s) {
    const Action& a = orders_[s][next_[s]];
    const std::int64_t from = ready(s, a);
    if (from == kNotYetKnown) return false;
    const bool forward = a.phase == Phase::forward, vocabulary = is_words(a) || is_logits(a);
    const PhaseTimes& t = times_[vocabulary ? count_ + (is_logits(a) ? 0 : 1) : place_of_[s][a.chunk]];
    const std::int64_t back = a.phase == Phase::input_gradient    ? t.input
                              : a.phase == Phase::weight_gradient ? t.weight
                                                                  : t.input + t.weight;
    now_[s] = std::max(now_[s], from) + (forward ? t.forward : back);
    if (vocabulary) {
      OfAll& all = of_all(is_logits(a), forward, a.micro_batch);
      ++all.stages;
      all.last = std::max(all.last, now_[s]);
    } else if (a.phase != Phase::weight_gradient) {
      ended(forward, place_of_[s][a.chunk], a.micro_batch) = now_[s];
    }
    ++next_[s];
    return true;
  }

  const Schedule& places_;
  const std::vector<std::vector<Action>>& orders_;
  std::vector<PhaseTimes> times_;
  std::int64_t micro_batches_, count_, gap_;
  std::vector<std::int64_t> now_;
  std::vector<std::size_t> next_;
  std::vector<std::vector<std::int64_t>> place_of_;  // for each stage and chunk, the number of its virtual stage
  // end times of passes: for forward (0) and backward (1), index: virtual stage * number of micro-batches + micro-batch
  std::array<std::vector<std::int64_t>, 2> ended_;
  // for each micro-batch, the passes of the shared vocabulary: token lookups and logits, forward and backward each
  std::array<std::vector<OfAll>, 4> shared_;
};

}  // namespace

std::int64_t order_length(const Schedule& places, const std::vector<std::vector<Action>>& orders,
                          const ScheduleShape& shape, std::int64_t gap) {
  return Length(places, orders, shape, gap).play();
}

std::vector<std::vector<PhaseTimes>> times_to_try(const ScheduleShape& shape) {
  std::vector<std::vector<PhaseTimes>> all = {shape.times};
  if (3 * shape.stages * shape.micro_batches * shape.chunks > kMostActions || shape.times.empty()) return all;
  constexpr std::array<std::array<std::int64_t, 3>, 8> kPercent = {{{130, 100, 100},
                                                                    {100, 130, 100},
                                                                    {100, 70, 100},
                                                                    {70, 100, 100},
                                                                    {100, 100, 150},
                                                                    {100, 100, 50},
                                                                    {200, 200, 100},
                                                                    {50, 50, 100}}};
  for (const auto& [forward, input, weight] : kPercent) {
    all.push_back(shape.times);
    for (PhaseTimes& t : all.back()) t = {t.forward * forward / 100, t.input * input / 100, t.weight * weight / 100};
  }
  return all;
}

}  // namespace orrery
