#include "models/chimera.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <tuple>

namespace orrery {
namespace {

// An action that could begin at a time; the least one does.
struct Candidate {
  std::int64_t begin = 0;
  bool forward = false;
  std::int64_t number = 0;  // of its direction's micro-batches
  std::int64_t stage = 0, direction = 0;
  auto operator<=>(const Candidate&) const = default;  // NOLINT(modernize-use-nullptr)
};

class Greedy {
 public:
  Greedy(const ScheduleShape& shape, std::int64_t most_each)
      : shape_(shape), most_each_(most_each), stages_(shape.stages) {
    for (auto& direction : ended_) direction.resize(2 * shape.stages);
    orders.resize(shape.stages);
  }

  void run() {
    for (std::int64_t s = 0; s < shape_.stages; ++s) find_next(s);
    while (!next_.empty()) {
      const Candidate c = *next_.begin();
      begin(c);
      find_next(c.stage);
      const std::int64_t at = place(c.stage, c.direction, c.forward) + 1;
      if (at < 2 * shape_.stages) find_next(stage_of(at, c.direction));
    }
  }
  std::int64_t end() const {
    std::int64_t last = 0;
    for (const Stage& s : stages_) last = std::max(last, s.now);
    return last;
  }

  std::vector<std::vector<Action>> orders;

 private:
  struct Stage {
    std::int64_t now = 0;
    std::array<std::int64_t, 2> forwards = {}, backwards = {};
    std::optional<Candidate> next{};
    std::int64_t in_flight(std::int64_t d) const { return forwards[d] - backwards[d]; }
  };

  // Passes of a direction: forward over its stages, then backward.
  std::int64_t place(std::int64_t stage, std::int64_t direction, bool forward) const {
    const std::int64_t k = direction == 0 ? stage : shape_.stages - 1 - stage;
    return forward ? k : 2 * shape_.stages - 1 - k;
  }

  std::optional<Candidate> candidate(std::int64_t stage, std::int64_t direction, bool forward) const {
    const Stage& s = stages_[stage];
    const std::int64_t number = forward ? s.forwards[direction] : s.backwards[direction];
    const bool room = s.in_flight(direction) < most_each_ && s.in_flight(0) + s.in_flight(1) < shape_.stages;
    if (2 * number >= shape_.micro_batches || (forward && !room)) return std::nullopt;
    const std::int64_t at = place(stage, direction, forward);
    if (at == 0) return Candidate{s.now, forward, number, stage, direction};
    const auto& before = ended_[direction][at - 1];
    if (number >= static_cast<std::int64_t>(before.size())) return std::nullopt;
    return Candidate{std::max(s.now, before[number]), forward, number, stage, direction};
  }

  std::int64_t stage_of(std::int64_t place, std::int64_t direction) const {
    const std::int64_t k = std::min(place, 2 * shape_.stages - 1 - place);
    return direction == 0 ? k : shape_.stages - 1 - k;
  }

  // What a stage begins next, which its own passes and those that it waits for alone can change.
  void find_next(std::int64_t stage) {
    std::optional<Candidate>& least = stages_[stage].next;
    if (least) next_.erase(*least);
    least.reset();
    for (const std::int64_t direction : {0, 1}) {
      for (const bool forward : {false, true}) {
        const auto c = candidate(stage, direction, forward);
        if (c && (!least || *c < *least)) least = c;
      }
    }
    if (least) next_.insert(*least);
  }

  void begin(const Candidate& c) {
    Stage& s = stages_[c.stage];
    s.now = c.begin + (c.forward ? 1 : 2);
    ++(c.forward ? s.forwards : s.backwards)[c.direction];
    ended_[c.direction][place(c.stage, c.direction, c.forward)].push_back(s.now);
    orders[c.stage].push_back({c.forward ? Phase::forward : Phase::backward, static_cast<std::int32_t>(c.direction),
                               static_cast<std::int32_t>(2 * c.number + c.direction)});
  }

  const ScheduleShape& shape_;
  std::int64_t most_each_;
  std::vector<Stage> stages_;
  std::set<Candidate> next_;                                     // of all stages
  std::array<std::vector<std::vector<std::int64_t>>, 2> ended_;  // by direction and place: of each micro-batch
};

}  // namespace

std::vector<std::vector<Action>> chimera_orders(const ScheduleShape& shape) {
  std::vector<std::vector<Action>> best;
  std::int64_t shortest = 0;
  for (const std::int64_t most_each : {shape.stages / 2, shape.stages / 2 + 1, shape.stages}) {
    Greedy greedy(shape, std::max<std::int64_t>(1, most_each));
    greedy.run();
    if (!best.empty() && greedy.end() >= shortest) continue;
    shortest = greedy.end();
    best = std::move(greedy.orders);
  }
  return best;
}

}  // namespace orrery
