#pragma once

// A few steps of a small model on a text, all ranks as threads of this process, put together as strategy_run.h does.
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "exec/cpu/host_device.h"
#include "exec/host/execute.h"
#include "exec/transport/threads_transport.h"
#include "models/spec/sharding.h"
#include "tests/exec/agreement.h"
#include "tests/exec/fake_transport.h"

namespace orrery::test {

using MakeDevice = std::function<std::unique_ptr<RankDevice>(const Rank&, QueuedTransport&)>;

inline void merge(Tensors& all, const Tensors& mine) {
  for (const auto& [name, values] : mine) {
    auto& to = all[name];
    to.resize(values.size(), NAN);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isnan(values[i])) to[i] = values[i];
    }
  }
}

// One rank's part of a run.
inline Result run_rank(const Rank& rank, RankDevice& device, std::int64_t steps) {
  const Text text =
      read_text(ORRERY_SOURCE_DIR "/exec/program/data/text.txt", rank.spec.model.vocab, rank.spec.sequence);
  Result r;
  const Copy read = [&](std::byte* to, const std::byte* from, std::size_t n) { device.read(to, from, n); };
  ExecuteOptions options;
  options.steps = steps;
  options.training = training_of(rank.spec);
  options.on_gradients = [&](std::int64_t step, const Buffers& b) {
    if (step > 0) return;
    add(r.gradients, owned_values(rank, b, Quantity::gradients, read));
    add(r.initial, owned_values(rank, b, Quantity::weights, read));
  };
  options.on_end = [&](const Buffers& b) { add(r.weights, owned_values(rank, b, Quantity::weights, read)); };
  r.losses = execute(rank, device, text, options).losses;
  return r;
}

inline void merge(Result& all, const Rank& rank, const Result& mine) {
  merge(all.gradients, mine.gradients);
  merge(all.initial, mine.initial);
  merge(all.weights, mine.weights);
  const Strategy& s = rank.spec.strategy;
  const double share = rank.position_in(Dimension::tensor).index == 0 ? 1.0 / static_cast<double>(s.loss_ranks()) : 0.0;
  for (std::size_t k = 0; k < mine.losses.size(); ++k) all.losses[k] += share * mine.losses[k];
}

// Runs all ranks on threads; rethrows the error of the first rank that failed.
inline Result run_on_threads(const Spec& spec, const MakeDevice& make, std::int64_t steps = kSteps) {
  const Plan plan = make_plan(spec);
  Meetings meetings(plan);
  Result all;
  all.losses.resize(static_cast<std::size_t>(steps), 0);
  std::mutex mutex;
  std::exception_ptr error;
  std::vector<std::thread> threads;
  for (std::int64_t r = 0; r < plan.ranks; ++r) {
    threads.emplace_back([&, r] {
      try {
        const Rank rank(spec, plan, r);
        const auto transport = meetings.transport(r);
        const auto device = make(rank, *transport);
        const Result mine = run_rank(rank, *device, steps);
        const std::lock_guard lock(mutex);
        merge(all, rank, mine);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        meetings.fail();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  if (error) std::rethrow_exception(error);
  return all;
}

// A spec of one rank, on a CPU.
inline Result on_cpu_rank(const Spec& one) {
  const Plan plan = make_plan(one);
  const Rank rank(one, plan, 0);
  FakeTransport transport(1);
  HostDevice device(rank, transport);
  Result all;
  all.losses.resize(static_cast<std::size_t>(kSteps), 0);
  merge(all, rank, run_rank(rank, device, kSteps));
  return all;
}

// The same model and batch on one CPU rank.
inline Result on_one_cpu_rank(const Spec& spec) { return on_cpu_rank(on_one_rank(spec)); }

inline void expect_close(const Distance& d, double factor = 1) {
  EXPECT_LE(d.gradient, factor * kLimit) << "gradient of " << d.of_gradient;
  EXPECT_LE(d.weight, factor * kLimit) << "weight " << d.of_weight;
  EXPECT_LE(d.change, factor * kChangeLimit) << "change of " << d.of_change;
  EXPECT_LE(d.loss, factor * kLimit);
}

}  // namespace orrery::test
