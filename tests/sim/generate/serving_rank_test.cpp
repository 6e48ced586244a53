#include "sim/generate/serving_rank.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

Request request_of(std::int64_t input, std::int64_t output) {
  return {.input = input, .output = output, .passes = output, .left = input};
}

TEST(ServingRank, AnswersAfterThePassThatEndsAPrompt) {
  const ServingLoad load = {.sequences = 4, .cache_bytes = 1000, .pass_tokens = 60};
  ServingRank rank(load);
  rank.add(request_of(40, 3));
  rank.add(request_of(40, 1));
  EXPECT_TRUE(rank.can_begin());
  EXPECT_EQ(rank.take_prompts(), 60);
  EXPECT_TRUE(rank.end_pass(false, 1).empty()) << "the second prompt has 20 tokens left";
  EXPECT_EQ(rank.answering(), 1);
  EXPECT_EQ(rank.waiting(), 1);
  EXPECT_EQ(rank.context(), 41);
  EXPECT_EQ(rank.take_prompts(), 20);
  const std::vector<Request> ended = rank.end_pass(true, 2);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended.front().first_s, 2);
  EXPECT_EQ(rank.context(), 42);
  EXPECT_EQ(rank.end_pass(true, 3).front().first_s, 1);
  EXPECT_EQ(rank.answering(), 0);
  EXPECT_EQ(rank.context(), 0);
}

TEST(ServingRank, BeginsWhatHasRoomAndASlot) {
  ServingLoad load = {.sequences = 1, .cache_bytes = 50, .pass_tokens = 100};
  ServingRank rank(load);
  rank.add(request_of(40, 20));
  EXPECT_FALSE(rank.can_begin()) << "60 tokens are reserved";
  load.cache_bytes = 1000;
  EXPECT_TRUE(rank.can_begin());
  EXPECT_EQ(rank.take_prompts(), 40);
  rank.end_pass(false, 1);
  rank.add(request_of(40, 20));
  EXPECT_FALSE(rank.can_begin()) << "one sequence at most";
}

// Two answers that grow to 30 tokens each do not fit into 50: the later one is put off and begins again with all that
// it has.
TEST(ServingRank, PutsOffTheAnswerThatWouldEndLast) {
  const ServingLoad load = {.sequences = 4, .cache_bytes = 50, .pass_tokens = 100, .reserves = false};
  ServingRank rank(load);
  rank.add(request_of(20, 10));
  rank.add(request_of(20, 11));
  EXPECT_EQ(rank.take_prompts(), 40);
  rank.end_pass(false, 1);
  for (int pass = 0; pass < 4; ++pass) {
    rank.put_off();
    rank.end_pass(true, 2);
  }
  EXPECT_EQ(rank.answering(), 2);
  rank.put_off();
  EXPECT_EQ(rank.answering(), 1);
  EXPECT_EQ(rank.waiting(), 1);
  EXPECT_EQ(rank.context(), 25);
  EXPECT_FALSE(rank.can_begin());
}

// A cache with room for exactly one request takes it, whatever a last pass may add beyond its answer.
TEST(ServingRank, BeginsTheRequestThatJustFits) {
  const ServingLoad load = {
      .sequences = 4, .cache_bytes = 60, .pass_tokens = 100, .checked_tokens = 4, .tokens_a_pass = 2.5};
  ServingRank rank(load);
  Request r = request_of(40, 20);
  r.passes = 9;  // 1 + ceil(19 / 2.5)
  rank.add(r);
  EXPECT_TRUE(rank.can_begin());
}

}  // namespace
}  // namespace orrery
