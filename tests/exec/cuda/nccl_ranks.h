#pragma once

#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "exec/cuda/nccl_transport.h"
#include "exec/program/rendezvous.h"
#include "tests/exec/cuda/on_gpu.h"
#include "tests/exec/jobs.h"
#include "tests/exec/threads_run.h"

// The ranks of a plan as threads, each with a transport over NCCL. On a GPU a plan has one.
namespace orrery::test {

// The ends of a rendezvous on this machine, by rank, at a port that is free.
inline std::vector<std::unique_ptr<Rendezvous>> meeting_of(std::int64_t ranks) {
  constexpr int kTries = 3;  // another process may take the port first
  for (int tries = 1;; ++tries) {
    const std::uint16_t port = free_port();
    std::vector<std::unique_ptr<Rendezvous>> ends;
    try {
      for (std::int64_t r = 0; r < ranks; ++r)
        ends.push_back(
            std::make_unique<Rendezvous>(RankPlacement{.rank = r, .ranks = ranks, .local_rank = r, .port = port}, 20));
      return ends;
    } catch (const Error&) {
      if (tries == kTries) throw;
    }
  }
}

// Runs f(rank, transport) of every rank, and returns the error of each. All are connected before any begins, and a rank
// that fails takes its end of the rendezvous along.
inline std::vector<std::string> on_nccl_ranks(const Plan& plan, const std::function<void(int, QueuedTransport&)>& f) {
  const auto ranks = static_cast<std::size_t>(plan.ranks);
  std::vector<std::string> errors(ranks);
  std::vector<std::unique_ptr<Rendezvous>> rendezvous = meeting_of(plan.ranks);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const std::unique_ptr<Rendezvous> own = std::move(rendezvous[r]);
      try {
        cuda::use_gpu(0);
        const auto transport = cuda::nccl_transport(*own, static_cast<std::int64_t>(r), plan);
        f(static_cast<int>(r), *transport);
      } catch (const std::exception& error) {
        errors[r] = error.what();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  return errors;
}

inline void expect_no_errors(const std::vector<std::string>& errors) {
  for (const std::string& e : errors) EXPECT_EQ(e, "");
}

// All ranks of a spec on this GPU, over NCCL.
inline Result run_on_nccl(const Spec& spec, cuda::SharedGpu& gpu) {
  const Plan plan = make_plan(spec);
  Result all;
  all.losses.resize(static_cast<std::size_t>(kSteps), 0);
  std::mutex mutex;
  expect_no_errors(on_nccl_ranks(plan, [&](int number, QueuedTransport& transport) {
    const Rank rank(spec, plan, number);
    cuda::CudaDevice device(rank, gpu, transport, false);
    const Result mine = run_rank(rank, device, kSteps);
    const std::lock_guard lock(mutex);
    merge(all, rank, mine);
  }));
  return all;
}

}  // namespace orrery::test
