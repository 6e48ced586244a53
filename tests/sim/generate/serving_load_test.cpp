#include "sim/generate/serving_load.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

// Passes of answers take a second and a thousandth for each token in the cache; a token of a prompt takes a tenth.
const PassTimes kPasses = {.decode = [](double n, double context) { return 1 + n * context / 1000; },
                           .attention = [](double n, double context) { return n * context / 1000; },
                           .prompt = [](double tokens) { return tokens / 10; }};
constexpr std::int64_t kRoomy = 1'000'000;

ServingLoad load_of(std::int64_t clients, std::int64_t requests) {
  return {.clients = clients, .requests = requests, .input = 40, .output = 5, .sequences = 1000, .cache_bytes = kRoomy};
}

TEST(ServingLoad, OneClientWaitsForItsOwnPassesAlone) {
  const ServingFigures f = play(load_of(1, 3), kPasses);
  EXPECT_NEAR(f.first_token_s, 4, 1e-12);
  EXPECT_NEAR(f.token_s, 1 + (41 + 42 + 43 + 44) / 4.0 / 1000, 1e-12);
  EXPECT_NEAR(f.total_s, 3 * (4 + 4 * f.token_s), 1e-9);
  EXPECT_EQ(f.tokens, 15);
}

// All clients send at once, and a pass takes one prompt: the k-th waits for k of them.
TEST(ServingLoad, PromptsWaitInLine) {
  ServingLoad load = load_of(10, 10);
  load.output = 1;
  load.pass_tokens = 40;
  EXPECT_NEAR(play(load, kPasses).first_token_s, 4 * (1 + 10) / 2.0, 1e-9);
  load.pass_tokens = 400;
  EXPECT_NEAR(play(load, kPasses).first_token_s, 40, 1e-9);
}

// A prompt longer than a pass takes several, beside which others answer.
TEST(ServingLoad, PromptsGoInPieces) {
  ServingLoad load = load_of(1, 1);
  load.pass_tokens = 16;
  EXPECT_NEAR(play(load, kPasses).first_token_s, 4, 1e-12);
}

// Little's law: clients are always waiting or answered, but for those that have no more request to send at the end.
TEST(ServingLoad, KeepsLittlesLaw) {
  for (const bool mixes : {true, false}) {
    ServingLoad load = load_of(8, 4000);
    load.shortest = 0.5;
    load.pass_tokens = 64;
    load.mixes = mixes;
    const ServingFigures f = play(load, kPasses);
    const double answer = static_cast<double>(f.tokens) / 4000;
    const double in_progress = 4000 * (f.first_token_s + f.token_s * (answer - 1)) / f.total_s;
    EXPECT_NEAR(in_progress, 8, 0.25) << mixes;
  }
}

TEST(ServingLoad, AnswersWaitForPromptsOfOthersUnlessPassesMixThem) {
  ServingLoad load = load_of(8, 800);
  load.shortest = 0.5;
  const ServingFigures mixed = play(load, kPasses);
  load.mixes = false;
  const ServingFigures apart = play(load, kPasses);
  EXPECT_EQ(mixed.tokens, apart.tokens);
  EXPECT_GT(apart.total_s, mixed.total_s);
}

// Two requests are in progress where the cache has room for two, and the others wait.
TEST(ServingLoad, WaitsForRoomInTheCache) {
  ServingLoad load = load_of(8, 80), two = load_of(2, 80);
  load.cache_bytes = 2 * 45;
  const ServingFigures narrow = play(load, kPasses), few = play(two, kPasses);
  EXPECT_NEAR(narrow.total_s / few.total_s, 1, 1e-9);
  EXPECT_GT(narrow.first_token_s, 5 * few.first_token_s);
  load.sequences = 1;
  EXPECT_GT(play(load, kPasses).total_s, narrow.total_s);
}

// Without reservations more begin; those that the cache has no room for any more are put off, and all are answered.
TEST(ServingLoad, PutsOffWhatGrowsBeyondTheCache) {
  ServingLoad load = load_of(8, 80);
  load.output = 60;
  load.cache_bytes = 2 * 100;
  const ServingFigures reserved = play(load, kPasses);
  load.reserves = false;
  const ServingFigures grown = play(load, kPasses);
  EXPECT_EQ(grown.tokens, 80 * 60);
  EXPECT_LT(grown.first_token_s, reserved.first_token_s);
  EXPECT_GT(grown.token_s, reserved.token_s);
}

// A recurrence's states take room whatever the length of a request.
TEST(ServingLoad, CountsStatesOncePerRequest) {
  ServingLoad load = load_of(8, 80);
  load.cache_bytes = 2 * (45 + 100);
  load.state_bytes = 100;
  EXPECT_NEAR(play(load, kPasses).total_s / play(load_of(2, 80), kPasses).total_s, 1, 1e-9);
}

TEST(ServingLoad, ShowsTheFirstTokenWithItsPiece) {
  ServingLoad load = load_of(1, 3);
  const ServingFigures each = play(load, kPasses);
  load.stream_passes = 3;
  const ServingFigures pieces = play(load, kPasses);
  EXPECT_NEAR(pieces.first_token_s, each.first_token_s + 2 * each.token_s, 1e-9);
  EXPECT_NEAR(pieces.token_s, each.token_s * 2 / 4, 1e-9);
  EXPECT_NEAR(pieces.total_s, each.total_s, 1e-9);
}

// A stack with nothing to answer looks for requests at once; otherwise they wait up to the passes between two looks.
TEST(ServingLoad, LooksForRequestsNowAndThen) {
  ServingLoad alone = load_of(1, 3), several = load_of(4, 400);
  several.shortest = 0.2;
  several.output = 40;
  const double before = play(several, kPasses).first_token_s;
  alone.poll_passes = several.poll_passes = 10;
  EXPECT_NEAR(play(alone, kPasses).first_token_s, 4, 1e-12);
  const double after = play(several, kPasses).first_token_s, a_pass = 1 + 4 * 80 / 1000.0;
  EXPECT_GT(after, before + 2);
  EXPECT_LT(after, before + 10 * a_pass);
}

// The host launches a pass over prompts for ten seconds, of which it hides what the pass before takes beyond its own
// launching: nothing before the first pass, nothing behind a pass that waited for its launches, all behind a long one.
TEST(ServingLoad, HidesLaunchesBehindThePassBefore) {
  PassTimes times = kPasses;
  times.launch = [](double) { return 10.0; };
  ServingLoad three = load_of(3, 3);
  three.output = 1;
  three.pass_tokens = 40;
  three.overlaps = true;
  EXPECT_NEAR(play(three, times).total_s, 3 * 10, 1e-12) << "passes of 4 s each";
  times.prompt = [](double) { return 12.0; };
  EXPECT_NEAR(play(three, times).total_s, 3 * 12, 1e-12);
  // A pass of answers of 12 seconds needs no launching: all of the next pass's is hidden.
  times.prompt = kPasses.prompt;
  times.decode = [](double, double) { return 12.0; };
  ServingLoad two = load_of(2, 3);
  two.output = 2;
  two.shortest = 0.5;
  two.mixes = false;
  const double apart = play(two, times).total_s;
  two.overlaps = true;
  EXPECT_LE(play(two, times).total_s, apart);
  ServingLoad alone = load_of(1, 3);
  alone.overlaps = true;
  EXPECT_NEAR(play(alone, times).first_token_s, 10, 1e-12) << "nothing runs before";
}

// Two data ranks with half of the clients each take as long as one of them alone, as both do the same.
TEST(ServingLoad, DataRanksComputePassesTogether) {
  ServingLoad two = load_of(6, 12), one = load_of(3, 6);
  two.data_ranks = 2;
  EXPECT_NEAR(play(two, kPasses).total_s, play(one, kPasses).total_s, 1e-9);
  // With unlike lengths each waits for the other's prompts too.
  one.shortest = two.shortest = 0.5;
  one.requests = 600;
  two.requests = 1200;
  EXPECT_GT(play(two, kPasses).token_s, 1.05 * play(one, kPasses).token_s);
}

// Prompts that wait for each other's data ranks come later, but interrupt answers less often.
TEST(ServingLoad, PromptsWaitForThoseOfOtherDataRanks) {
  ServingLoad load = load_of(16, 1600);
  load.data_ranks = 4;
  load.shortest = 0.5;
  load.output = 60;
  const ServingFigures at_once = play(load, kPasses);
  load.balance_passes = 1;
  EXPECT_EQ(play(load, kPasses).first_token_s, at_once.first_token_s);
  load.balance_passes = 40;
  const ServingFigures balanced = play(load, kPasses);
  EXPECT_GT(balanced.first_token_s, 1.5 * at_once.first_token_s);
  EXPECT_LT(balanced.token_s, at_once.token_s);
  EXPECT_LT(balanced.first_token_s, at_once.first_token_s + 40 * (1 + 16 * 100 / 1000.0));
  EXPECT_EQ(balanced.tokens, at_once.tokens);
}

// Four further tokens take two passes of two tokens each.
TEST(ServingLoad, PassesYieldSeveralTokens) {
  ServingLoad load = load_of(1, 1);
  load.tokens_a_pass = 2;
  load.checked_tokens = 3;
  EXPECT_NEAR(play(load, kPasses).token_s, (2 + (41 + 43) / 1000.0) / 4, 1e-12);
}

// A pass of 60 tokens takes one prompt of 40 and half of the next one, or leaves it whole for the next pass.
TEST(ServingLoad, PromptsAreCutOrWaitForRoom) {
  ServingLoad load = load_of(2, 2);
  load.output = 1;
  load.pass_tokens = 60;
  EXPECT_NEAR(play(load, kPasses).first_token_s, (6 + 8) / 2.0, 1e-12);
  load.cuts_prompts = false;
  EXPECT_NEAR(play(load, kPasses).first_token_s, (4 + 8) / 2.0, 1e-12);
}

// The server turns prompts into tokens one after another: of three that come at once the k-th is ready after k times.
TEST(ServingLoad, PromptsWaitForTheirTokens) {
  ServingLoad load = load_of(3, 3);
  load.output = 1;
  load.tokenise_s = 1;
  EXPECT_NEAR(play(load, kPasses).first_token_s, 40 * (1 + 2 + 3) / 3.0 + 4, 1e-9);
  // The first is ready after 0.4 s and takes a pass of 4 s; the other two are ready by then and share the next.
  load.tokenise_s = 0.01;
  EXPECT_NEAR(play(load, kPasses).first_token_s, (4.4 + 12.4 + 12.4) / 3, 1e-9);
}

// Requests that come far apart are answered alone; those that come faster than they are answered wait ever longer.
TEST(ServingLoad, RequestsComeAtARate) {
  ServingLoad load = load_of(1, 200);
  load.requests_per_s = 1e-4;
  const ServingFigures seldom = play(load, kPasses);
  EXPECT_NEAR(seldom.first_token_s, 4, 0.1);
  EXPECT_NEAR(static_cast<double>(seldom.tokens) / seldom.total_s / (5 * 1e-4), 1, 0.1);
  load.requests_per_s = 10;
  load.pass_tokens = 40;
  const ServingFigures often = play(load, kPasses);
  EXPECT_GT(often.first_token_s, 10 * seldom.first_token_s);
}

// Requests that each take one pass of a second, and come at random at a rate r, wait r / (2 (1 - r)) on average (the
// formula of Pollaczek and Khinchine for M/D/1 queues). Requests that came evenly would not wait.
TEST(ServingLoad, RequestsThatComeAtRandomQueue) {
  ServingLoad load = load_of(1, 20'000);
  load.input = 10;
  load.output = 1;
  load.pass_tokens = 10;
  for (const double rate : {0.5, 0.8}) {
    load.requests_per_s = rate;
    EXPECT_NEAR(play(load, kPasses).first_token_s, 1 + rate / (2 * (1 - rate)), 0.1) << rate;
  }
}

}  // namespace
}  // namespace orrery
