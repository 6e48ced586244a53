#include "exec/host/snapshot.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "exec/host/initial.h"
#include "models/base/error.h"
#include "models/layers/blocks.h"
#include "models/trace/trace_file.h"
#include "tests/exec/jobs.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

struct States {
  explicit States(const Rank& rank) : memory(host_segments()), buffers(rank, memory) {
    set_initial_weights(rank, 3, buffers);
  }
  CachingMemory memory;
  Buffers buffers;
};

TEST(Snapshot, BringsAServersStatesBack) {
  const test::TemporaryFolder folder;
  const test::Job job = test::tiny_job(
      "data: 2, sharding: parameter-server, parameter_server: {servers: 2, snapshot_every: 5}, global_batch: 2");
  const Rank server = job.rank(2);
  const std::uint32_t state = server.states.front();
  States one(server), other(server);
  for (const StateSlot slot : {kMoment1, kMoment2}) one.buffers.hold_state(state, slot);
  const auto n = server.plan.blocks[server.plan.frames[state].block].buffers[kMoment1].bytes / 4;
  for (std::int64_t i = 0; i < n; ++i) {
    reinterpret_cast<float*>(one.buffers.state(state, kMoment1))[i] = static_cast<float>(i);
    reinterpret_cast<float*>(one.buffers.state(state, kParameterShard))[i] = static_cast<float>(-i);
    reinterpret_cast<float*>(one.buffers.state(state, kMoment2))[i] = 2;
  }
  const std::vector<double> losses = {3.5, 2.5};
  write_snapshot(folder.path(), server, one.buffers, 10, 5, losses);
  EXPECT_EQ(read_snapshot(folder.path(), server, other.buffers, 10), losses);
  for (const StateSlot slot : {kParameterShard, kMoment1, kMoment2}) {
    const std::byte *a = one.buffers.state(state, slot), *b = other.buffers.state(state, slot);
    EXPECT_EQ(std::memcmp(a, b, static_cast<std::size_t>(4 * n)), 0) << slot;
  }
  // Two are kept.
  write_snapshot(folder.path(), server, one.buffers, 15, 5, losses);
  write_snapshot(folder.path(), server, one.buffers, 20, 5, losses);
  EXPECT_FALSE(std::filesystem::exists(snapshot_file(folder.path(), 2, 10)));
  EXPECT_TRUE(std::filesystem::exists(snapshot_file(folder.path(), 2, 15)));
}

TEST(Snapshot, OfAWorkerHoldsItsLosses) {
  const test::TemporaryFolder folder;
  const test::Job job = test::tiny_job(
      "data: 2, sharding: parameter-server, parameter_server: {servers: 2, snapshot_every: 5}, global_batch: 2");
  const Rank worker = job.rank(0);
  States states(worker);
  write_snapshot(folder.path(), worker, states.buffers, 5, 5, {1, 2, 3});
  EXPECT_LT(std::filesystem::file_size(snapshot_file(folder.path(), 0, 5)), 100U);
  EXPECT_EQ(read_snapshot(folder.path(), worker, states.buffers, 5), (std::vector<double>{1, 2, 3}));
}

TEST(Snapshot, ABrokenFileIsRefused) {
  const test::TemporaryFolder folder;
  const test::Job job = test::tiny_job(
      "data: 2, sharding: parameter-server, parameter_server: {servers: 2, snapshot_every: 5}, global_batch: 2");
  const Rank server = job.rank(3);
  States states(server);
  for (const StateSlot slot : {kMoment1, kMoment2}) states.buffers.hold_state(server.states.front(), slot);
  write_snapshot(folder.path(), server, states.buffers, 5, 5, {});
  const std::string path = snapshot_file(folder.path(), 3, 5);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_THROW(read_snapshot(folder.path(), server, states.buffers, 5), Error);
  std::ofstream(path, std::ios::app) << "more";
  EXPECT_THROW(read_snapshot(folder.path(), server, states.buffers, 5), Error);
  std::filesystem::remove(path);
  EXPECT_THROW(read_snapshot(folder.path(), server, states.buffers, 5), Error);
}

}  // namespace
}  // namespace orrery
