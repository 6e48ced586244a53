#include "exec/transport/alone_transport.h"

#include <cstring>

#include <gtest/gtest.h>

#include "tests/exec/host_queue.h"
#include "tests/exec/jobs.h"

namespace orrery {
namespace {

using Floats = std::vector<float>;

// Rank 1 of 3 alone; the other ranks are taken to have the same data.
class Alone : public testing::Test {
 protected:
  void start(CollectiveKind kind, const Floats& in, Floats& out, std::vector<std::int64_t> counts, bool add = false) {
    const QueuedCall call{
        LaneKind::tensor, &queue_,
        CollectiveCall{.kind = kind, .in = in.data(), .out = out.data(), .counts = counts, .add = add}};
    transport_->start({&call, 1});
  }

  test::Job job_ = test::tiny_job("data: 3, global_batch: 3");
  Rank rank_ = job_.rank(1);
  Floats bank_ = {7, 8, 9};
  std::unique_ptr<QueuedTransport> transport_ = alone_transport(rank_, std::as_bytes(std::span(bank_)));
  test::HostQueue queue_;
};

TEST_F(Alone, GathersItsOwnPieceFromEverybody) {
  Floats out(5);
  start(CollectiveKind::all_gather, {3, 4}, out, {2, 2, 1});
  EXPECT_EQ(out, (Floats{3, 4, 3, 4, 3}));
}

TEST_F(Alone, ScattersItsOwnPieceOfTheWhole) {
  Floats out = {10, 10};
  start(CollectiveKind::reduce_scatter, {1, 2, 3, 4, 5}, out, {2, 2, 1}, true);
  EXPECT_EQ(out, (Floats{13, 14}));
  start(CollectiveKind::reduce_scatter, {1, 2, 3, 4, 5}, out, {2, 2, 1});
  EXPECT_EQ(out, (Floats{3, 4}));
}

TEST_F(Alone, KeepsWhatItReduces) {
  Floats all = {1, 2};
  start(CollectiveKind::all_reduce, all, all, {2});
  EXPECT_EQ(all, (Floats{1, 2}));
}

// The rows of tokens in another rank's part of the vocabulary are zero here; the others' part of a sum in bf16 is not.
TEST_F(Alone, AddsItsBankToSumsInBf16) {
  const std::vector<std::uint16_t> in = {0, 0, 0, 0, 0, 0, 0, 0};
  std::vector<std::uint16_t> all = in, own(3);
  const auto start = [&](CollectiveKind kind, std::uint16_t* out, std::vector<std::int64_t> counts) {
    CollectiveCall call{.kind = kind, .element = Element::bf16, .in = in.data(), .out = out, .counts = counts};
    if (kind == CollectiveKind::all_reduce) call.in = out;
    const QueuedCall queued{LaneKind::tensor, &queue_, call};
    transport_->start({&queued, 1});
  };
  std::vector<std::uint16_t> bank(6);  // three floats are six halves, and are repeated
  std::memcpy(bank.data(), bank_.data(), 12);
  start(CollectiveKind::all_reduce, all.data(), {8});
  EXPECT_EQ(all, (std::vector<std::uint16_t>{bank[0], bank[1], bank[2], bank[3], bank[4], bank[5], bank[0], bank[1]}));
  start(CollectiveKind::reduce_scatter, own.data(), {3, 3, 2});
  EXPECT_EQ(own, (std::vector<std::uint16_t>{bank[0], bank[1], bank[2]}));
}

TEST_F(Alone, ReceivesFromItsBank) {
  Floats data(5);
  const QueuedCall call{LaneKind::receive_next, &queue_, MessageCall{false, 0, data.data(), 20}};
  transport_->start({&call, 1});
  EXPECT_EQ(data, (Floats{7, 8, 9, 7, 8}));
}

}  // namespace
}  // namespace orrery
