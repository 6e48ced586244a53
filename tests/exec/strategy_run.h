#pragma once

// A few steps of a small model on a text under any strategy, put together on rank 0 (mpirun starts the ranks).
#include <mpi.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "exec/cpu/host_device.h"
#include "exec/mpi/transport.h"
#include "models/partition/rank_groups.h"
#include "models/plan/hash.h"
#include "tests/exec/agreement.h"

namespace orrery::test {

// Waits for a request and sleeps meanwhile. There are fewer cores than ranks, and MPI's own waiting takes them from the
// ranks that work.
inline void wait_asleep(MPI_Request& request) {
  for (int done = 0; done == 0;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

// Puts together on rank 0 the elements that the ranks own; elements that several ranks own must agree there too, since
// the last one stays.
inline Tensors collect(MPI_Comm world, const Tensors& mine) {
  int rank = 0, size = 1;
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &size);
  if (rank > 0) {
    for (const auto& [name, values] : mine) {
      MPI_Send(name.data(), static_cast<int>(name.size()), MPI_CHAR, 0, 1, world);
      MPI_Send(values.data(), static_cast<int>(values.size()), MPI_FLOAT, 0, 2, world);
    }
    MPI_Send("", 0, MPI_CHAR, 0, 1, world);
    return {};
  }
  Tensors all = mine;
  for (int from = 1; from < size; ++from) {
    while (true) {
      MPI_Status status;
      int length = 0;
      MPI_Probe(from, 1, world, &status);
      MPI_Get_count(&status, MPI_CHAR, &length);
      std::string name(static_cast<std::size_t>(length), ' ');
      MPI_Recv(name.data(), length, MPI_CHAR, from, 1, world, MPI_STATUS_IGNORE);
      if (length == 0) break;
      MPI_Probe(from, 2, world, &status);
      MPI_Get_count(&status, MPI_FLOAT, &length);
      std::vector<float> values(static_cast<std::size_t>(length));
      MPI_Recv(values.data(), length, MPI_FLOAT, from, 2, world, MPI_STATUS_IGNORE);
      auto& to = all[name];
      to.resize(values.size(), NAN);
      float* const into = to.data();
      const float* const sent = values.data();
      for (std::size_t i = 0, n = values.size(); i < n; ++i) {
        if (sent[i] == sent[i]) into[i] = sent[i];  // not NaN
      }
    }
  }
  return all;
}

// Changes that a test makes to a run.
struct Changes {
  std::function<void(Plan&)> plan;
  std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>)> transport;
  std::int64_t steps = kSteps;  // how often the plan runs
  Watcher watcher = {};
  std::function<void(std::int64_t step, const Rank&, const Buffers&)> on_begin = {};  // called before every step
  std::function<void(Training&)> training = {};
};

inline Result run(MPI_Comm world, const Spec& spec, const Changes& changes = {}) {
  check_executable(spec);
  int number = 0;
  MPI_Comm_rank(world, &number);
  const Plan plan = make_plan(spec);
  const Spec own = spec_of_rank(spec, number);
  Rank rank(own, plan, number);
  if (changes.plan) changes.plan(rank.plan);
  auto transport = mpi_transport(world, rank.plan);
  if (changes.transport) transport = changes.transport(std::move(transport));
  const Text text = read_text(ORRERY_SOURCE_DIR "/exec/program/data/text.txt", spec.model.vocab, spec.sequence);
  Tensors gradients, initial, weights, routing;
  ExecuteOptions options;
  options.steps = changes.steps;
  options.training = training_of(spec);
  if (changes.training) changes.training(options.training);
  options.watcher = changes.watcher;
  options.on_begin = [&](std::int64_t step, const Buffers& b, const std::vector<double>&) {
    if (changes.on_begin) changes.on_begin(step, rank, b);
  };
  options.on_gradients = [&](std::int64_t step, const Buffers& b) {
    if (step > 0) return;
    add(gradients, owned_values(rank, b, Quantity::gradients));
    add(initial, owned_values(rank, b, Quantity::weights));
  };
  options.on_routing = [&](const RoutedToken& t) {
    auto& all = routing[fmt::format("{}layer {} step {}", t.second ? "second " : "", t.layer, t.step)];
    const std::int64_t k = (t.second ? spec.second->model : spec.model).moe->top_k;
    all.resize(static_cast<std::size_t>(spec.strategy.global_batch * spec.sequence * k), NAN);
    const std::int64_t at = (t.sample % spec.strategy.global_batch * spec.sequence + t.position) * k;
    std::copy(t.experts.begin(), t.experts.end(), all.begin() + at);
  };
  options.on_end = [&](const Buffers& b) { add(weights, owned_values(rank, b, Quantity::weights)); };
  const Execution e = execute(rank, *transport, text, options);
  Result result = {
      collect(world, gradients), collect(world, initial), collect(world, weights), collect(world, routing), {}};
  int knows = e.losses.empty() ? 0 : 1, know = 0;  // number of ranks that have the loss, each of equally many tokens
  MPI_Allreduce(&knows, &know, 1, MPI_INT, MPI_SUM, world);
  const double share = 1.0 / know;
  for (std::int64_t step = 0; step < changes.steps * plan.steps; ++step) {
    double loss = e.losses.empty() ? 0 : share * e.losses[step], sum = 0;
    MPI_Allreduce(&loss, &sum, 1, MPI_DOUBLE, MPI_SUM, world);
    result.losses.push_back(sum);
  }
  return result;
}

// The result on one rank, cached by the hash of the one-rank plan, which determines the computation.
inline const Result& reference_of(const Spec& spec) {
  static std::map<std::string, Result> known;
  const Spec one = on_one_rank(spec);
  Plan plan = make_plan(one);
  route_alike(spec, plan);
  const auto [it, fresh] =
      known.try_emplace(fmt::format("{} {} {}", plan_hash(plan), one.model.dropout, one.strategy.clip));
  if (fresh) it->second = run(MPI_COMM_SELF, one, {.plan = [&](Plan& p) { route_alike(spec, p); }});
  return it->second;
}

// The number of ranks of a job, with those of a second model's own.
inline std::int64_t ranks_of(const Spec& spec) { return spec.strategy.ranks() + (spec.second ? spec.second->gpus : 0); }

// The first ranks of the job, as many as the spec asks for; MPI_COMM_NULL on the others.
inline MPI_Comm ranks_for(const Spec& spec) {
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  EXPECT_LE(ranks_of(spec), size);
  MPI_Request request = MPI_REQUEST_NULL;  // rank 0 may still compute the reference of the case before
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  wait_asleep(request);
  MPI_Comm some = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank < ranks_of(spec) ? 0 : MPI_UNDEFINED, rank, &some);
  return some;
}

// The distance of the run from one rank, on rank 0; nothing on the other ranks.
inline std::optional<Distance> distance_of(const Spec& spec, const Changes& changes = {}) {
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return std::nullopt;
  const Result result = run(some, spec, changes);
  int rank = 0;
  MPI_Comm_rank(some, &rank);
  MPI_Comm_free(&some);
  if (rank > 0) return std::nullopt;
  return distance(spec, result, reference_of(spec));
}

inline void expect_agreement(const Distance& d) {
  EXPECT_LE(d.gradient, kLimit) << "gradient of " << d.of_gradient;
  EXPECT_LE(d.weight, kLimit) << "weight " << d.of_weight;
  EXPECT_LE(d.change, kChangeLimit) << "change of " << d.of_change;
  EXPECT_LE(d.loss, kLimit);
}

// Checks a run against one rank; tokens must go to the same experts as there.
inline void expect_like_one_rank(const Spec& spec) {
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return;
  const Result result = run(some, spec);
  int rank = 0;
  MPI_Comm_rank(some, &rank);
  MPI_Comm_free(&some);
  if (rank > 0) return;
  const auto [differ, all] = differing_choices(result, reference_of(spec));
  ASSERT_EQ(differ, 0) << "choices of experts differ from the reference's, of " << all;
  EXPECT_EQ(all > 0, has_experts(spec) || (spec.second && spec.second->model.moe));
  expect_agreement(distance(spec, result, reference_of(spec)));
}

}  // namespace orrery::test
