#include "exec/place_copies.h"

#include <gtest/gtest.h>

#include "tests/exec/jobs.h"

namespace orrery {
namespace {

// What lies in a state's buffer begins where the operand's unit does.
bool fits(const Argument& a, Bytes end) {
  return a.disk != nullptr || a.operand.scope == Scope::state || end <= a.bytes;
}

// Every copy of a rank moves what its work says, as far as the rank owns that, and stays within both buffers.
TEST(PlaceCopies, MoveWhatARankOwns) {
  for (const char* strategy :
       {"data: 2, sharding: zero2, global_batch: 4, offload: {optimizer: {device: cpu, tile: 1001}, gradients: cpu}",
        "data: 2, sharding: zero1, global_batch: 2, offload: {optimizer: cpu, activations: cpu}",
        "data: 2, sharding: zero3, global_batch: 2, offload: {optimizer: nvme, gradients: nvme, parameters: nvme}"}) {
    const test::Job job = test::tiny_job(strategy);
    for (std::int64_t r = 0; r < job.plan.ranks; ++r) {
      const Rank rank = job.rank(r);
      const Text text = read_text(ORRERY_SOURCE_DIR "/exec/data/text.txt", job.spec.model.vocab, job.spec.sequence);
      RunState state = run_state(rank, text, {});
      CachingMemory memory(host_segments());
      Buffers buffers(rank, memory);
      Bytes copied = 0;
      for (TaskId t = 0; t < rank.plan.task_count(); ++t) {
        const Launch launch = buffers.issue(t, [](TaskId) { return true; });
        const auto* work = std::get_if<PlaceCopy>(&rank.plan.op_of(t).work);
        if (work == nullptr) continue;
        Bytes sum = 0;
        for (const PlacedRun& run : runs_of(OpCall(state, launch), *work)) {
          sum += run.bytes;
          EXPECT_GE(run.from_first, 0);
          EXPECT_GE(run.to_first, 0);
          EXPECT_TRUE(fits(run.from, run.from_first + run.bytes)) << rank.plan.op_of(t).name;
          EXPECT_TRUE(fits(run.to, run.to_first + run.bytes)) << rank.plan.op_of(t).name;
        }
        EXPECT_LE(sum, work->bytes) << rank.plan.op_of(t).name;
        copied += sum;
      }
      EXPECT_GT(copied, 0);
    }
  }
}

TEST(PlaceCopies, GoToADiskAndBack) {
  DiskStore disk;
  std::vector<std::byte> bytes(64), back(64);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  Argument memory, other, file;
  memory.data = bytes.data();
  other.data = back.data();
  file.disk = &disk;
  file.at = disk.take(128);
  move_on_host({memory, file, 16, 32, 48});
  move_on_host({file, other, 40, 8, 40});
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(back[8 + i], bytes[24 + i]);
  move_on_host({memory, other, 0, 0, 8});
  EXPECT_EQ(back[7], bytes[7]);
}

}  // namespace
}  // namespace orrery
