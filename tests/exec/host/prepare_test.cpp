#include "exec/host/prepare.h"

#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

#include "exec/transport/combine.h"
#include "models/layers/blocks.h"
#include "tests/exec/jobs.h"

namespace orrery {
namespace {

using test::Job;
using test::random_job;
using test::tiny_job;

TEST(Calls, CutCoversTheRun) {
  for (std::int64_t elements = 0; elements < 40; ++elements) {
    for (std::int64_t members = 1; members < 9; ++members) {
      const auto counts = cut(elements, members);
      ASSERT_EQ(counts.size(), static_cast<std::size_t>(members));
      EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), elements);
      EXPECT_TRUE(std::is_sorted(counts.rbegin(), counts.rend()));
      EXPECT_EQ(counts[0], ceil_div(elements, members));
    }
  }
}

TEST(Calls, PackingIsUndone) {
  std::vector<std::byte> memory(100), before;
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = std::byte{static_cast<unsigned char>(i)};
  before = memory;
  Packed packed;
  packed.runs = {{memory.data() + 70, 8}, {memory.data() + 3, 5}, {memory.data() + 20, 0}, {memory.data() + 40, 16}};
  ASSERT_EQ(packed.bytes(), 29);
  std::vector<std::byte> together(29);
  packed.pack(together.data(), copy_on_host);
  EXPECT_EQ(together[0], std::byte{70});
  EXPECT_EQ(together[8], std::byte{3});
  for (std::byte& b : memory) b = std::byte{255};
  packed.unpack(together.data(), copy_on_host);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const bool in = (i >= 70 && i < 78) || (i >= 3 && i < 8) || (i >= 40 && i < 56);
    EXPECT_EQ(memory[i], in ? before[i] : std::byte{255}) << i;
  }
}

// Whether [at, at + bytes) lies in one of the buffers that the launch names.
bool inside(const Rank& rank, const Launch& launch, const void* at, Bytes bytes) {
  const std::uint32_t frame = rank.plan.tasks[launch.task].frame;
  for (const Argument& a : launch.arguments) {
    const std::uint32_t target = frame_of(rank.plan, frame, a.operand);
    const Bytes size = rank.plan.blocks[rank.plan.frames[target].block].buffers[a.operand.slot].bytes;
    const auto* begin = static_cast<const std::byte*>(at);
    if (a.data != nullptr && a.data <= begin && begin + bytes <= a.data + size) return true;
  }
  return false;
}

void expect_call(const Rank& rank, const Collective& work, const Launch& launch, const PreparedCollective& p) {
  const CollectiveCall& call = p.call;
  const Bytes width = width_of(call.element);
  const std::int64_t all = std::accumulate(call.counts.begin(), call.counts.end(), std::int64_t{0});
  const GroupPosition& seat = rank.position_in(work.group);
  EXPECT_EQ(width, work.width);
  if (call.kind == CollectiveKind::all_reduce) {
    EXPECT_EQ(call.in, call.out);
    ASSERT_EQ(call.counts.size(), 1U);
    const bool whole = launch.arguments[0].operand.part == Part::all;
    // The plan takes what is packed to lie evenly over the shards; one member may own all of it.
    EXPECT_LE(all * width, work.bytes * (whole ? 1 : rank.position_in(Dimension::data).size));
    if (p.packed.runs.empty()) {
      EXPECT_TRUE(all == 0 || inside(rank, launch, call.in, all * width));
    } else {
      EXPECT_EQ(p.packed.bytes(), all * width);
      for (const auto& r : p.packed.runs) EXPECT_TRUE(inside(rank, launch, r.at, static_cast<Bytes>(r.bytes)));
    }
    return;
  }
  if (call.kind == CollectiveKind::reduce || call.kind == CollectiveKind::broadcast) {
    ASSERT_EQ(call.counts.size(), 1U);
    EXPECT_EQ(all * width, work.bytes);
    const bool reads = call.kind == CollectiveKind::reduce || seat.index == call.root;
    const bool writes = call.kind == CollectiveKind::broadcast || seat.index == call.root;
    EXPECT_TRUE(!reads || inside(rank, launch, call.in, work.bytes));
    EXPECT_TRUE(!writes || inside(rank, launch, call.out, work.bytes));
    return;
  }
  ASSERT_EQ(call.counts.size(), static_cast<std::size_t>(seat.size));
  EXPECT_EQ(all * width, work.bytes);
  const Bytes own = call.counts[static_cast<std::size_t>(seat.index)] * width;
  const bool gathers = call.kind == CollectiveKind::all_gather;
  EXPECT_TRUE(inside(rank, launch, call.in, gathers ? own : work.bytes));
  EXPECT_TRUE(inside(rank, launch, call.out, gathers ? work.bytes : own));
  const auto *in = static_cast<const std::byte*>(call.in), *out = static_cast<const std::byte*>(call.out);
  const auto *whole = gathers ? out : in, *piece = gathers ? in : out;
  const bool apart = piece + own <= whole || whole + work.bytes <= piece;
  EXPECT_TRUE(apart || piece == whole + seat.index * call.counts[0] * width || own == 0) << "not its own place";
}

// Every transfer of every rank of random plans names memory inside the buffers of its operands, and its two ends have
// the same size.
TEST(Calls, StayInsideTheirBuffers) {
  int collectives = 0, packed = 0, messages = 0;
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    const auto job = random_job(seed);
    if (job == nullptr || job->plan.task_count() > 3000) continue;
    SCOPED_TRACE(seed);
    const Rank rank = job->rank(static_cast<std::int64_t>(seed) % job->plan.ranks);
    CachingMemory memory(host_segments());
    Buffers buffers(rank, memory);
    for (TaskId t = 0; t < rank.plan.task_count(); ++t) {
      const Launch launch = buffers.issue(t, [](TaskId) { return true; });
      const Op& op = rank.plan.op_of(t);
      if (const auto* work = std::get_if<Collective>(&op.work)) {
        SCOPED_TRACE(op.name);
        const PreparedCollective p = prepare(rank, *work, launch);
        expect_call(rank, *work, launch, p);
        ++collectives;
        packed += p.packed.runs.empty() ? 0 : 1;
      }
      if (const auto* work = std::get_if<Transfer>(&op.work)) {
        const MessageCall m = prepare(rank, *work, launch);
        EXPECT_TRUE(inside(rank, launch, m.data, m.bytes));
        EXPECT_NE(m.peer, rank.number);
        ++messages;
      }
    }
  }
  EXPECT_GT(collectives, 1000);
  EXPECT_GT(packed, 10);
  EXPECT_GT(messages, 100);
}

// Rows of experts padded to their capacity are sent node by node, each with the number of its token; padding rows have
// none.
TEST(Calls, PaddedRowsHaveTheirTokens) {
  const Job job = tiny_job("data: 4, expert: 4, global_batch: 4, micro_batch: 1",
                           test::kTiny +
                               ", moe: {experts: 8, top_k: 2, feed_forward: 32, capacity_factor: 1.5, "
                               "pad_to_capacity: true, dispatch: hierarchical}");
  constexpr std::int64_t kTokens = 16, kChoices = 2 * kTokens, kRows = 8 * 6;  // experts, ceil(1.5 * 32 / 8) rows each
  const Rank rank = job.rank(1);
  CachingMemory memory(host_segments());
  Buffers buffers(rank, memory);
  int there = 0, back = 0;
  for (TaskId t = 0; t < rank.plan.task_count(); ++t) {
    const Launch launch = buffers.issue(t, [](TaskId) { return true; });
    const Op& op = rank.plan.op_of(t);
    const auto* work = std::get_if<Collective>(&op.work);
    if (work == nullptr || work->group != Dimension::expert || op.name.find("weights") != std::string::npos) continue;
    const Argument& routing = launch.arguments.at(1);
    ASSERT_EQ(routing.bytes, 2 * kChoices * 4) << op.name;
    auto* places = reinterpret_cast<std::int32_t*>(routing.data) + kChoices;
    for (std::int64_t i = 0; i < kChoices; ++i) places[i] = i < 3 ? -1 : static_cast<std::int32_t>(kRows - 1 - i);
    const CollectiveCall call = prepare(rank, *work, launch).call;
    EXPECT_EQ(call.row, 32);
    EXPECT_EQ(call.counts, (std::vector<std::int64_t>(4, kRows / 4 * 32)));
    EXPECT_EQ(call.received, call.counts);
    ASSERT_EQ(call.tokens.size(), static_cast<std::size_t>(kRows));
    EXPECT_EQ(std::count(call.tokens.begin(), call.tokens.end(), -1), kRows - kChoices + 3);
    EXPECT_EQ(call.tokens[kRows - 1 - 7], 3);
    ++(call.sums ? back : there);
  }
  EXPECT_EQ(there, 4);  // two layers, dispatch forward and combine backward
  EXPECT_EQ(back, 4);
}

// Scattered data that are packed for a collective have the same size on all ranks of the group: for shared key/value
// heads, for norms under sequence parallelism, and for a tied embedding table on both end stages.
TEST(Calls, MembersPackTheSame) {
  const std::string model =
      "name: tiny, layers: 4, hidden: 33, heads: 4, head_dim: 6, kv_heads: 2, feed_forward: 44, vocab: 67, "
      "tied_embeddings: true, qk_norm: true";
  for (const char* strategy :
       {"tensor: 4, data: 2, sharding: zero2, global_batch: 2", "tensor: 4, data: 3, sharding: fsdp, global_batch: 3",
        "tensor: 2, pipeline: 2, data: 3, sharding: zero1, global_batch: 6",
        "tensor: 2, pipeline: 2, data: 3, sharding: zero2, global_batch: 6"}) {
    SCOPED_TRACE(strategy);
    const Job job = tiny_job(strategy, model);
    std::map<std::string, std::int64_t> sizes;
    for (std::int64_t r = 0; r < job.plan.ranks; ++r) {
      const Rank rank = job.rank(r);
      CachingMemory memory(host_segments());
      Buffers buffers(rank, memory);
      for (TaskId t = 0; t < rank.plan.task_count(); ++t) {
        const Launch launch = buffers.issue(t, [](TaskId) { return true; });
        const auto* work = std::get_if<Collective>(&rank.plan.op_of(t).work);
        if (work == nullptr || launch.arguments[0].operand.part == Part::all) continue;
        const auto& group = rank.group(work->group);
        const std::string key = fmt::format("{} of {}", rank.plan.op_of(t).name, fmt::join(group, " "));
        const std::int64_t n = prepare(rank, *work, launch).call.counts[0];
        EXPECT_EQ(sizes.try_emplace(key, n).first->second, n) << key;
      }
    }
    EXPECT_FALSE(sizes.empty());
  }
}

}  // namespace
}  // namespace orrery
