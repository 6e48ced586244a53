#include "models/schedule/chimera.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <set>
#include <tuple>

namespace orrery {
namespace {

// An action that a stage could begin at time `begin`. Of all candidates the least one is run next; they are compared by
// their fields, from the first to the last.
struct Candidate {
  std::int64_t begin = 0;
  bool forward = false;
  std::int64_t number = 0;  // index of the micro-batch among the micro-batches of its direction
  std::int64_t stage = 0, direction = 0;
  auto operator<=>(const Candidate&) const = default;  // NOLINT(modernize-use-nullptr)
};

class Greedy {
 public:
  Greedy(const ScheduleShape& shape, std::int64_t copies, std::int64_t most_each)
      : shape_(shape),
        copies_(copies),
        most_each_(most_each),
        where_(place_chunks(ChunkPlacement::both_ways, shape, copies)),
        stages_(shape.stages, Stage(copies)),
        ended_(copies, std::vector<std::vector<std::int64_t>>(2 * shape.stages)) {
    orders.resize(shape.stages);
    place_.assign(copies, std::vector<std::int64_t>(shape.stages));
    for (std::int64_t k = 0; k < copies * shape.stages; ++k)
      place_[k / shape.stages][where_.stage_of[k]] = k % shape.stages;
  }

  // Runs the actions of all stages; returns whether all were run. Some are not if the two directions wait for each
  // other forever, which can happen when the micro-batches of one direction may use up a stage's limit of micro-batches
  // in flight.
  bool run() {
    for (std::int64_t s = 0; s < shape_.stages; ++s) find_next(s);
    while (!next_.empty()) {
      const Candidate c = *next_.begin();
      begin(c);
      find_next(c.stage);
      const std::int64_t at = place(c.stage, c.direction, c.forward) + 1;
      if (at < 2 * shape_.stages) find_next(stage_of(at, c.direction));
    }
    return std::all_of(orders.begin(), orders.end(),
                       [&](const auto& order) { return std::ssize(order) == 2 * shape_.micro_batches; });
  }
  std::int64_t end() const {
    std::int64_t last = 0;
    for (const Stage& s : stages_) last = std::max(last, s.now);
    return last;
  }

  std::vector<std::vector<Action>> orders;

 private:
  struct Stage {
    explicit Stage(std::int64_t copies) : forwards(copies), backwards(copies) {}
    std::int64_t now = 0, alive = 0;
    std::vector<std::int64_t> forwards, backwards;  // for each direction, the number of passes run so far
    std::optional<Candidate> next{};
    std::int64_t in_flight(std::int64_t d) const { return forwards[d] - backwards[d]; }
  };

  // Returns the position of a pass among the passes of a micro-batch: forward over the direction's stages, then
  // backward.
  std::int64_t place(std::int64_t stage, std::int64_t direction, bool forward) const {
    const std::int64_t k = place_[direction][stage];
    return forward ? k : 2 * shape_.stages - 1 - k;
  }

  std::optional<Candidate> candidate(std::int64_t stage, std::int64_t direction, bool forward) const {
    const Stage& s = stages_[stage];
    const std::int64_t number = forward ? s.forwards[direction] : s.backwards[direction];
    const bool room = s.in_flight(direction) < most_each_ && s.alive < shape_.stages;
    if (copies_ * number >= shape_.micro_batches || (forward && !room)) return std::nullopt;
    const std::int64_t at = place(stage, direction, forward);
    if (at == 0) return Candidate{s.now, forward, number, stage, direction};
    const auto& before = ended_[direction][at - 1];
    if (number >= static_cast<std::int64_t>(before.size())) return std::nullopt;
    return Candidate{std::max(s.now, before[number]), forward, number, stage, direction};
  }

  std::int64_t stage_of(std::int64_t place, std::int64_t direction) const {
    return where_.stage_of[direction * shape_.stages + std::min(place, 2 * shape_.stages - 1 - place)];
  }

  // Finds the action that a stage begins next. This action changes only when the stage runs a pass, or when a pass runs
  // that one of the stage's passes waits for.
  void find_next(std::int64_t stage) {
    std::optional<Candidate>& least = stages_[stage].next;
    if (least) next_.erase(*least);
    least.reset();
    for (std::int64_t direction = 0; direction < copies_; ++direction) {
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
    s.alive += c.forward ? 1 : -1;
    ++(c.forward ? s.forwards : s.backwards)[c.direction];
    ended_[c.direction][place(c.stage, c.direction, c.forward)].push_back(s.now);
    orders[c.stage].push_back({c.forward ? Phase::forward : Phase::backward, static_cast<std::int32_t>(c.direction),
                               static_cast<std::int32_t>(copies_ * c.number + c.direction)});
  }

  const ScheduleShape& shape_;
  std::int64_t copies_, most_each_;
  Schedule where_;
  std::vector<Stage> stages_;
  std::set<Candidate> next_;  // the next action of each stage, the earliest first
  // end time of each pass; indices: direction, position of the pass among a micro-batch's passes (place), micro-batch
  // of the direction
  std::vector<std::vector<std::vector<std::int64_t>>> ended_;
  // for each direction and stage, the stage's index on the path that the forwards of that direction take through the
  // stages
  std::vector<std::vector<std::int64_t>> place_;
};

}  // namespace

std::vector<std::vector<Action>> chimera_orders(const ScheduleShape& shape, std::int64_t copies) {
  std::vector<std::vector<Action>> best;
  // The result is empty if the copies of the model do not divide the stages and micro-batches, because no order would
  // be complete; the planner rejects such numbers with a message that names their keys.
  if (shape.stages % copies != 0 || shape.micro_batches % copies != 0) return best;
  std::int64_t shortest = 0;
  for (const std::int64_t most_each : {shape.stages / copies, shape.stages / copies + 1, shape.stages}) {
    Greedy greedy(shape, copies, std::max<std::int64_t>(1, most_each));
    const bool complete = greedy.run();
    if (!complete || (!best.empty() && greedy.end() >= shortest)) continue;
    shortest = greedy.end();
    best = std::move(greedy.orders);
  }
  assert(!best.empty());
  return best;
}

}  // namespace orrery
