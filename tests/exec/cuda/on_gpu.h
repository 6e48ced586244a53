#pragma once

#include <gtest/gtest.h>

#include "exec/cuda/device.h"
#include "exec/cuda/queue.h"
#include "tests/exec/jobs.h"
#include "tests/exec/threads_run.h"

namespace orrery::test {

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    const cuda::GpuCount gpus = cuda::count_gpus();
    if (gpus.count == 0) GTEST_SKIP() << "no GPU: " << gpus.why;
    cuda::use_gpu(0);
  }
};

// Whether this GPU computes. The null GPU (null_gpu/) does not: on it runs go to their end and their calls are checked,
// but no numbers are compared.
inline bool computes() { return cuda::gpu_name(0) != "null GPU"; }

// A rank's queue that belongs to no run.
class OwnQueue {
 public:
  cuda::CudaQueue& operator*() { return queue_; }
  cuda::CudaQueue* operator->() { return &queue_; }

 private:
  Job job_ = tiny_job("data: 1, global_batch: 1");
  Rank rank_ = job_.rank(0);
  Text text_ = read_text(ORRERY_SOURCE_DIR "/exec/program/data/text.txt", rank_.spec.model.vocab, rank_.spec.sequence);
  RunState run_{rank_, text_, {}, 0, {}, {}};
  cuda::CudaState state_{run_, {}};
  cuda::Marks marks_{0, 1, 1};
  cuda::CudaQueue queue_{state_, marks_};
};

// All ranks of a spec as threads on this GPU.
inline Result run_on_gpu(const Spec& spec, cuda::SharedGpu& gpu) {
  return run_on_threads(spec, [&](const Rank& rank, QueuedTransport& transport) {
    cuda::use_gpu(0);
    return std::make_unique<cuda::CudaDevice>(rank, gpu, transport, false);
  });
}

// A GPU's run of a spec agrees with a CPU's: sums are taken in another order, and exponentials differ in their last
// bit, so the limits are three times those that CPU ranks keep among themselves.
inline void expect_like_cpu(const Spec& spec, const Result& on_gpu, Result (*on_cpu)(const Spec&)) {
  EXPECT_EQ(on_gpu.losses.size(), static_cast<std::size_t>(kSteps));
  EXPECT_FALSE(on_gpu.weights.empty());
  if (computes()) expect_close(distance(spec, on_gpu, on_cpu(spec)), 3);
}

}  // namespace orrery::test
