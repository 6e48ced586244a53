// The work of attention beside its products.
#pragma once

#include <cstdint>

#include "models/base/units.h"
#include "models/plan/direction.h"

namespace orrery {

// Attention in one kernel: softmax(Q K^T / sqrt(d)) V, without writing the scores to memory. q is (batch, query, heads,
// head_dim); k and v have kv_heads heads. Under context parallelism the queries and the keys may come from different
// parts of the sequence (models/spec/sequence.h). The keys then lie in a buffer of their own (keys_apart), and come
// from the sequence block `hops` blocks before the rank's own, or from all blocks. merges: the result over these keys
// is merged with the result over earlier keys by the log-sum-exp of its rows (Liu et al. 2023, Ring Attention,
// 2310.01889); in backward the queries' gradient is added to the gradient over earlier keys.
struct FlashAttention {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, query = 0, key = 0, head_dim = 0, value_dim = 0;
  std::int64_t window = 0;  // number of keys that a query sees; 0 = causal over all keys
  Direction direction = Direction::forward;
  double softcap = 0;  // cap of the scores, as in SoftCap; 0 = none. The FLOPs of its tanh are not counted
  // number of query-key pairs that the mask leaves in one head of one sample; < 0: the mask is causal over all keys
  double pairs = -1;
  std::int64_t hops = 0;
  bool keys_apart = false;
  bool merges = false;
  bool eight_bit = false;  // whether the kernel's products are in 8 bits
  bool drops = false;      // dropout of the probabilities: every pair costs a random number, in forward and in backward
  std::int64_t chosen = 0;  // if above 0, a query sees only keys that an index chose (IndexScores), at most this many
  // > 0: number of compressed keys (Pool: one key of several tokens), of which a query sees some beside a window of
  // ordinary keys; `pairs` counts the pairs with both
  std::int64_t compressed = 0;
  // For generation with a KV cache. cached: number of tokens of each sequence whose keys and values are read from the
  // cache; cached_row: bytes of one token in the cache. The queries are those of the tokens after the cached ones, and
  // `key` counts cached and new tokens.
  std::int64_t cached = 0;
  Bytes cached_row = 0;
  // Whether CUDA cores compute it, each query head for itself, although several share a key head, whose rows then come
  // from the L2 cache (Software::Kernels::grouped_attention)
  bool on_cuda_cores = false;
};

// The op copies heads of every token between the packed QKV projection (rows, heads + 2 kv_heads) and a buffer
// (members, rows, ...) that is exchanged within a context parallel group of `members` ranks. Each member's part has an
// equal number of query heads and the key/value heads that these need, so that a key/value head may go to several
// members; with one member and without queries the buffer has all keys and values. backward: copies from the exchanged
// buffer into the packed one, and sums the gradients of heads that went to several members.
struct MoveHeads {
  std::int64_t rows = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t members = 1;
  bool queries = true;
  Direction direction = Direction::forward;

  std::int64_t member_heads() const { return queries ? heads / members : 0; }
  std::int64_t member_kv_heads() const { return kv_heads == 0 ? 0 : kv_heads < members ? 1 : kv_heads / members; }
  // number of columns of one context rank's part: head_dim for each of its query, key and value heads
  std::int64_t columns() const { return (member_heads() + 2 * member_kv_heads()) * head_dim; }
};

// Row-wise softmax of attention scores (batch, heads, query, key), here a matrix (rows, columns), with mask and
// dropout, in one kernel (fused) or in several. window: the sliding window, as in FlashAttention; keys outside the
// window get probability zero, and cost as much as keys inside.
struct Softmax {
  std::int64_t rows = 0, columns = 0;
  bool dropout = false;
  bool fused = true;
  Direction direction = Direction::forward;
  std::int64_t window = 0;
};

struct Rotary {
  std::int64_t rows = 0, columns = 0;  // number of tokens, and of rotated columns of queries and keys together
  std::int64_t head_dim = 0;
  bool fused = true;
  Direction direction = Direction::forward;
};

// The op between the projections of latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1) and the attention
// itself. It rotates the last `rope` columns of every query head in place, and packs keys and values. It reads (rows,
// heads * (nope + value)) projected keys and values, and the rotated keys (rows, rope), which all heads share; it
// writes (rows, heads * (nope + rope)) keys, then (rows, heads * value) values. Backward unpacks the gradients of the
// packed buffers, and sums the shared keys' gradient over this rank's heads.
struct LatentHeads {
  std::int64_t rows = 0, heads = 0, nope = 0, rope = 0, value = 0;
  bool fused = true;
  Direction direction = Direction::forward;
};

// The op of sparse attention (DeepSeek-V3.2, arXiv 2512.02556, section 2.1) that scores all earlier tokens for each
// token and chooses the top_k tokens with the highest scores, which alone the attention then reads. The score of a pair
// is the sum over the index's `heads` heads of a weight times ReLU(q k). query: number of this rank's tokens in a
// sample; key: number of tokens that they choose from. Backward computes the gradient of the divergence between the
// index's choice and attention's probabilities over the chosen tokens. In generation the keys of the `cached` tokens
// before the pass are read from the cache, where a key has cached_row bytes; `key` counts cached and new tokens.
struct IndexScores {
  std::int64_t batch = 0, heads = 0, query = 0, key = 0, head_dim = 0, top_k = 0;
  Direction direction = Direction::forward;
  std::int64_t cached = 0;
  Bytes cached_row = 0;
};

// The op of attention to compressed keys (DeepSeek-V4's technical report, section 2.3) that makes one key of every
// `rate` tokens of a sample: a sum over these tokens, weighted in every column by the softmax of a gate plus a learned
// bias of the token's position among them. overlaps: contents and gates have twice `columns` columns, the first half
// of which belongs to the key of the next run of tokens, so that a key is a sum over two runs. Tokens after the last
// whole run have no key.
struct Pool {
  std::int64_t batch = 0, sequence = 0, columns = 0, rate = 1;
  bool overlaps = false;
  Direction direction = Direction::forward;

  std::int64_t keys() const { return sequence / rate; }  // number of compressed keys of one sample
};

}  // namespace orrery
