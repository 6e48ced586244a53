#include "exec/host/place_copies.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "tests/exec/jobs.h"

namespace orrery {
namespace {

// Whether a run ends within its buffer; a state's buffer is longer than the operand, which begins inside it at the
// unit.
bool fits(const Argument& a, Bytes end) {
  return a.disk != nullptr || a.operand.scope == Scope::state || end <= a.bytes;
}

// Checks the runs that one copy op moves: within both buffers, and no byte written twice. Returns the sum of bytes.
Bytes expect_runs(const std::vector<PlacedRun>& runs, const std::string& name) {
  Bytes sum = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> written;
  for (const PlacedRun& run : runs) {
    sum += run.bytes;
    EXPECT_GT(run.bytes, 0) << name;
    EXPECT_GE(run.from_first, 0) << name;
    EXPECT_GE(run.to_first, 0) << name;
    EXPECT_TRUE(fits(run.from, run.from_first + run.bytes)) << name;
    EXPECT_TRUE(fits(run.to, run.to_first + run.bytes)) << name;
    written.emplace_back(run.to_first, run.to_first + run.bytes);
  }
  std::sort(written.begin(), written.end());
  for (std::size_t i = 1; i < written.size(); ++i) EXPECT_LE(written[i - 1].second, written[i].first) << name;
  return sum;
}

// The bytes that a rank moves in each copy op of the plan, in plan order.
std::vector<Bytes> moved_by(const Rank& rank, const Text& text) {
  RunState state = run_state(rank, text, {});
  CachingMemory memory(host_segments());
  Buffers buffers(rank, memory);
  std::vector<Bytes> moved;
  for (TaskId t = 0; t < rank.plan.task_count(); ++t) {
    const Launch launch = buffers.issue(t, [](TaskId) { return true; });
    const auto* work = std::get_if<PlaceCopy>(&rank.plan.op_of(t).work);
    if (work == nullptr) continue;
    const Bytes sum = expect_runs(runs_of(OpCall(state, launch), *work), rank.plan.op_of(t).name);
    const BlockRole role = rank.plan.blocks[rank.plan.frames[rank.plan.tasks[t].frame].block].role;
    if (role != BlockRole::state && role != BlockRole::tile) {
      EXPECT_EQ(sum, work->bytes) << rank.plan.op_of(t).name;
    }
    moved.push_back(sum);
  }
  return moved;
}

// Copies between device, host and disk move the bytes that their op states: activations whole, of weights and states
// the part that a rank owns, so that all data-parallel ranks together move every element of a chunk once.
TEST(PlaceCopies, MoveWhatARankOwns) {
  for (const char* strategy :
       {"data: 2, sharding: zero2, global_batch: 4, offload: {optimizer: {device: cpu, tile: 1001}, gradients: cpu}",
        "data: 2, sharding: zero1, global_batch: 2, offload: {optimizer: cpu, activations: cpu}",
        "data: 2, sharding: zero3, global_batch: 2, offload: {optimizer: nvme, gradients: nvme, parameters: nvme}"}) {
    SCOPED_TRACE(strategy);
    const test::Job job = test::tiny_job(strategy);
    const Text text =
        read_text(ORRERY_SOURCE_DIR "/exec/program/data/text.txt", job.spec.model.vocab, job.spec.sequence);
    std::map<std::string, Bytes> all;
    for (std::int64_t r = 0; r < job.plan.ranks; ++r) {
      const Rank rank = job.rank(r);
      const std::vector<Bytes> moved = moved_by(rank, text);
      EXPECT_FALSE(moved.empty());
      std::size_t i = 0;
      for (TaskId t = 0; t < rank.plan.task_count(); ++t) {
        if (!std::holds_alternative<PlaceCopy>(rank.plan.op_of(t).work)) continue;
        all[rank.plan.op_of(t).name] += moved.at(i++);
      }
    }
    const Bytes whole = 4 * parameter_count(job.spec.model, job.spec.sequence);
    for (const auto& [name, bytes] : all) {
      if (name.starts_with("activations")) continue;
      EXPECT_GE(bytes, whole) << name;
      EXPECT_EQ(bytes % whole, 0) << name;  // for every micro-batch, or pass, once
    }
    EXPECT_EQ(all["activations up"], all["activations down"]);
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
