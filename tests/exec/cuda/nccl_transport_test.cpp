#include "exec/cuda/nccl_transport.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/exec/cuda/on_gpu.h"
#include "tests/exec/threads_run.h"

// Communicators of one rank are all that one GPU allows.
namespace orrery {
namespace {

class NcclTransport : public test::OnGpu {};

// NCCL with communicators of one rank: starts, copies, ends.
TEST_F(NcclTransport, AloneAgreesWithTheCpu) {
  const Spec spec = spec_of(test::Case{test::kLlama, "data: 1, sharding: zero1, global_batch: 2"});
  const Plan plan = make_plan(spec);
  const Rank rank(spec, plan, 0);
  Rendezvous rendezvous({.port = static_cast<std::uint16_t>(20000 + ::getpid() % 20000)}, 20);
  const auto transport = cuda::nccl_transport(rendezvous, 0, rank.plan);
  cuda::SharedGpu gpu;
  cuda::CudaDevice device(rank, gpu, *transport, false);
  test::Result all;
  all.losses.resize(static_cast<std::size_t>(test::kSteps), 0);
  merge(all, rank, test::run_rank(rank, device, test::kSteps));
  expect_like_cpu(spec, all, test::on_one_cpu_rank);
}

}  // namespace
}  // namespace orrery
