#pragma once

#include <cstdint>
#include <functional>

namespace orrery {

// Requests to an inference stack that forms a pass from whatever waits (continuous batching: Yu et al. 2022, Orca): of
// clients that each send their next one when their last one has ended, and their first at the begin, or at a rate.
// Numbers of sequences and tokens, and bytes, are those of one data rank.
struct ServingLoad {
  std::int64_t clients = 1;
  // Requests that come in a second on average, whatever has ended, at random (a Poisson process); 0: clients send them
  // as they are answered.
  double requests_per_s = 0;
  // Data ranks, which compute their passes together: each pass lasts as long as the fullest rank's. A request goes to
  // the rank that has the fewest.
  std::int64_t data_ranks = 1;
  std::int64_t requests = 1;                // of all clients together
  std::int64_t input = 1, output = 1;       // tokens of a request's prompt and of its answer, at most
  double shortest = 1;                      // lengths are drawn from this share of the longest up to it
  std::int64_t sequences = 1;               // the most requests in progress that the stack allows
  double cache_bytes = 1;                   // memory for keys and values, and for recurrent states
  double token_bytes = 1, state_bytes = 0;  // of it, for each token, and for each request whatever its length
  std::int64_t pass_tokens = 8192;          // the most tokens of prompts and answers in one pass
  // Whether one pass takes tokens of prompts and of answers together. If not, answers wait while prompts are processed.
  bool mixes = true;
  // Whether a request gets room in the cache for its whole answer before it begins. If not, answers take room as they
  // grow, and where none is left the request that would end last begins again later, with what it has answered.
  bool reserves = true;
  // Whether the host schedules and launches a pass while the one before it runs: the time of launching hides behind
  // what that pass takes beyond its own launching, and what was sent meanwhile waits for the pass after the next.
  bool overlaps = false;
  // After so many passes of answers the stack looks for new requests; it does so too after a pass over prompts, and
  // when it has nothing to answer.
  std::int64_t poll_passes = 1;
  // An answer is streamed in pieces of what so many passes made: the first token reaches the client with the first
  // piece.
  std::int64_t stream_passes = 1;
  // Whether a pass may take a part of a prompt (chunked prefill). If not, a prompt waits for a pass with room for it,
  // or one without other prompts.
  bool cuts_prompts = true;
  // Prompts begin when every data rank has one that may begin, so that none computes prompts while others wait for it;
  // but no later than after so many passes without. 0: they begin at once.
  std::int64_t balance_passes = 0;
  // Tokens that a pass of answers computes for each sequence, more than one with speculative decoding, and tokens of
  // the answer that it yields on average.
  std::int64_t checked_tokens = 1;
  double tokens_a_pass = 1;
  // Seconds for each token of a prompt in which the server turns its text into tokens, one request after another,
  // before the stack can see it.
  double tokenise_s = 0;
};

// Seconds of passes.
struct PassTimes {
  std::function<double(double sequences, double context)> decode;     // answers alone
  std::function<double(double sequences, double context)> attention;  // the part of it that reads the cache
  std::function<double(double tokens)> prompt;                        // so many tokens of prompts
  // the part of it for experts, which compute the tokens of all data ranks
  std::function<double(double tokens)> experts = [](double) { return 0.0; };
  // for which the host launches a pass with so many tokens of prompts; other passes are CUDA graphs
  std::function<double(double tokens)> launch = [](double) { return 0.0; };
};

// Means over all requests. first_token_s: from sending a request to its first token (TTFT); token_s: between its tokens
// after that (TPOT). total_s: from the first request to the end of the last; tokens: of all answers.
struct ServingFigures {
  double first_token_s = 0, token_s = 0, total_s = 0;
  std::int64_t tokens = 0;
};

// Plays the requests pass by pass, in the order in which they were sent. The longest request has room in the cache.
ServingFigures play(const ServingLoad& load, const PassTimes& times);

}  // namespace orrery
