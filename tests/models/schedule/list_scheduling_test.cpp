// Orders of stages that share the vocabulary, evaluated independently.
#include "models/schedule/list_scheduling.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

#include "tests/models/play_orders.h"

namespace orrery {
namespace {

// The time at which the last stage ends, if exchanges take no time. Chunks behind a stage's own: token embeddings,
// logits.
std::int64_t end_of(const Schedule& schedule, const std::vector<PhaseTimes>& times) {
  const auto p = static_cast<int>(schedule.order.size()), count = static_cast<int>(schedule.stage_of.size());
  std::map<std::pair<int, int>, int> place;
  for (int k = 0; k < count; ++k) place[{schedule.stage_of[k], schedule.chunk_of[k]}] = k;
  std::map<std::tuple<int, bool, int>, std::int64_t> ended;  // virtual stage, whether forward, micro-batch
  std::map<std::tuple<int, bool, int>, std::vector<std::int64_t>> shared;  // chunk, whether forward, micro-batch
  std::vector<std::int64_t> now(p, 0);
  std::vector<std::size_t> next(p, 0);
  const auto of_all = [&](int chunk, bool forward, int i) {
    const auto& ends = shared[{chunk, forward, i}];
    return static_cast<int>(ends.size()) < p ? std::int64_t{-1} : *std::max_element(ends.begin(), ends.end());
  };
  const auto of = [&](int k, bool forward, int i) {
    const auto it = ended.find({k, forward, i});
    return it == ended.end() ? std::int64_t{-1} : it->second;
  };
  const auto ready = [&](int s, const Action& a) {
    const bool forward = a.phase == Phase::forward;
    const int i = a.micro_batch;
    if (a.chunk == schedule.input_chunk) return forward ? 0 : of(0, false, i);
    if (a.chunk == schedule.output_chunk)
      return forward ? of(count - 1, true, i) : of_all(schedule.output_chunk, true, i);
    if (a.phase == Phase::weight_gradient) return std::int64_t{0};
    const int k = place.at({s, a.chunk});
    if (forward) return k == 0 ? of_all(schedule.input_chunk, true, i) : of(k - 1, true, i);
    return k < count - 1 ? of(k + 1, false, i) : of_all(schedule.output_chunk, schedule.barriers == 1, i);
  };
  const auto time_of = [&](int s, const Action& a) {
    const bool own = a.chunk < schedule.input_chunk;
    const PhaseTimes& t = times[own ? place.at({s, a.chunk}) : count + (a.chunk == schedule.output_chunk ? 0 : 1)];
    if (a.phase == Phase::backward) return t.input + t.weight;
    return a.phase == Phase::forward ? t.forward : a.phase == Phase::input_gradient ? t.input : t.weight;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = 0; s < p; ++s) {
      if (next[s] == schedule.order[s].size()) continue;
      const Action& a = schedule.order[s][next[s]];
      const std::int64_t begin = ready(s, a);
      if (begin < 0) continue;
      now[s] = std::max(now[s], begin) + time_of(s, a);
      const bool forward = a.phase == Phase::forward;
      if (a.chunk >= schedule.input_chunk)
        shared[{a.chunk, forward, a.micro_batch}].push_back(now[s]);
      else if (a.phase != Phase::weight_gradient)
        ended[{place.at({s, a.chunk}), forward, a.micro_batch}] = now[s];
      ++next[s];
      moved = true;
    }
  }
  for (int s = 0; s < p; ++s) EXPECT_EQ(next[s], schedule.order[s].size()) << "stage " << s << " is stuck";
  return *std::max_element(now.begin(), now.end());
}

std::int64_t most_of_chunk(const std::vector<Action>& order, std::int32_t chunk) {
  std::vector<Action> some;
  std::copy_if(order.begin(), order.end(), std::back_inserter(some), [&](const Action& a) { return a.chunk == chunk; });
  return test::most_in_flight(some);
}

std::vector<PhaseTimes> times_of(std::int64_t p, const PhaseTimes& layers, const PhaseTimes& logits) {
  std::vector<PhaseTimes> times(p, layers);
  times.push_back(logits);
  times.push_back({1, 0, 1});  // token embeddings
  return times;
}

// Yeung et al. 2024, section 5: activations of p + 1 micro-batches with one barrier, p + 2 with two; a stage keeps few
// logits.
TEST(FilledOrders, KeepAsManyAsThePaperSays) {
  for (const auto& [name, barriers] : {std::pair{"vocab-1f1b", 1}, {"vocab-1f1b-alg1", 2}}) {
    for (const std::int64_t p : {2, 3, 4, 8}) {
      for (const std::int64_t m : {std::int64_t{1}, p, 4 * p + 1}) {
        const Schedule s = make_schedule(name, {p, m, 1, times_of(p, {10, 10, 10}, {3, 3, 3})});
        EXPECT_EQ(s.barriers, barriers);
        for (std::int64_t stage = 0; stage < p; ++stage) {
          EXPECT_LE(most_of_chunk(s.order[stage], 0), std::min(m, p - stage + barriers)) << name;
          EXPECT_LE(most_of_chunk(s.order[stage], 2), 3) << name << " " << p << " " << m << " " << stage;
        }
      }
    }
  }
}

// Stages do the work of m micro-batches without waiting, except to fill and drain the pipeline: no stage waits for the
// last one's logits as in 1F1B. The steady state is full: with twice the micro-batches the step grows by exactly their
// work.
TEST(FilledOrders, WaitOnlyToFillAndToEmpty) {
  for (const auto& [name, barriers] : {std::pair{"vocab-1f1b", 1}, {"vocab-1f1b-alg1", 2}}) {
    for (const std::int64_t p : {2, 4, 8, 16}) {
      for (const PhaseTimes& logits : {PhaseTimes{3, 3, 3}, {10, 10, 10}, {1, 1, 1}}) {
        const PhaseTimes layers = {30, 30, 30};
        const auto times = times_of(p, layers, logits);
        const std::int64_t work = 90 + logits.forward + logits.input + logits.weight + 2;
        const std::int64_t m = 4 * p;
        const auto end = [&](std::int64_t micro_batches) {
          return end_of(make_schedule(name, {p, micro_batches, 1, times}), times);
        };
        EXPECT_LE(end(m), m * work + (p - 1) * 90 + (barriers + 1) * work) << name << " " << p << " " << logits.forward;
        EXPECT_LE(end(2 * m) - end(m), m * work + work) << name << " " << p << " " << logits.forward;
      }
    }
  }
}

// V-shaped schedules with a shared vocabulary keep as many more micro-batches than in the paper (arXiv:2405.15362,
// table 1) as there are barriers: the time to fill and drain grows by the work of a micro-batch for each barrier, and
// one more.
TEST(FilledOrders, FitTheVocabularyIntoAV) {
  struct Form {
    const char* name;
    std::int64_t (*most)(std::int64_t p);
  };
  const Form forms[] = {{"zb-v", [](std::int64_t p) { return p; }},
                        {"v-half", [](std::int64_t p) { return (p + 2) / 2; }},
                        {"v-min", [](std::int64_t p) { return (p + 4) / 3; }}};
  for (const Form& form : forms) {
    for (const int barriers : {1, 2}) {
      for (const std::int64_t p : {2, 4, 8}) {
        const std::string name = std::string("vocab-") + form.name + (barriers == 2 ? "-alg1" : "");
        std::vector<PhaseTimes> times(2 * p, {30, 30, 30});
        times.push_back({10, 10, 10});
        times.push_back({1, 0, 1});
        const std::int64_t m = 4 * p, work = 180 + 30 + 2;
        const Schedule s = make_schedule(name, {p, m, 2, times});
        for (const auto& order : s.order) {
          std::int64_t halves = 0;
          for (const Action& a : order) {
            if (a.chunk >= s.input_chunk) continue;
            halves += a.phase == Phase::forward ? 1 : a.phase == Phase::weight_gradient ? -1 : 0;
            ASSERT_LE(halves, 2 * (form.most(p) + barriers)) << name << " " << p;
          }
          EXPECT_LE(most_of_chunk(order, s.output_chunk), 3) << name << " " << p;
        }
        const std::int64_t plain =
            test::spans_of(make_schedule(form.name, {p, m, 2, times}), times.front()).back().second;
        const std::int64_t end = end_of(s, times);
        const std::int64_t more = end_of(make_schedule(name, {p, 2 * m, 2, times}), times) - end;
        // V-Min leaves little room between the passes of eight stages.
        const std::int64_t wedged = form.name == std::string("v-min") && p == 8 ? work / 4 : 0;
        EXPECT_LE(end - m * work, plain - m * 180 + (barriers + 1) * work + wedged) << name << " " << p;
        EXPECT_EQ(more, m * work) << name << " " << p;
      }
    }
  }
}

// A single stage holds the whole vocabulary, and runs 1F1B.
TEST(FilledOrders, AreThoseOf1f1bOnOneStage) {
  const Schedule alone = make_schedule("vocab-1f1b", {1, 4, 1}), plain = make_schedule("1f1b", {1, 4, 1});
  EXPECT_FALSE(alone.spreads_vocabulary());
  ASSERT_EQ(alone.order[0].size(), plain.order[0].size());
}

}  // namespace
}  // namespace orrery
