// This file runs the sparse attention of a generation's pass on the CPU: an index chooses tokens among the cached and
// the new ones, and every head attends to the latent keys of these tokens.
#include <cmath>
#include <cstring>

#include "exec/cpu/cached_rows.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/latent.h"

namespace orrery {
namespace {

using kernels::columns_of;
using kernels::matrix;
using FloatMatrix = kernels::Matrix<float>;

// The key of the index of one token in the cache: codes in E4M3, and behind them the scale by which they are
// multiplied, which takes the largest element of the key to the largest number of the format.
struct IndexKey {
  std::int64_t elements = 0;
  Bytes bytes = 0;

  void store(const float* key, std::byte* to) const {
    float largest = 0;
    for (std::int64_t i = 0; i < elements; ++i) largest = std::max(largest, std::abs(key[i]));
    const float scale = largest > 0 ? largest / kernels::kLargestE4m3 : 1;
    for (std::int64_t i = 0; i < elements; ++i) to[i] = static_cast<std::byte>(kernels::to_e4m3(key[i] / scale));
    std::memcpy(to + bytes - static_cast<Bytes>(sizeof(scale)), &scale, sizeof(scale));
  }
  void load(const std::byte* from, float* key) const {
    float scale = 1;
    std::memcpy(&scale, from + bytes - static_cast<Bytes>(sizeof(scale)), sizeof(scale));
    for (std::int64_t i = 0; i < elements; ++i) key[i] = scale * kernels::from_e4m3(static_cast<std::uint8_t>(from[i]));
  }
};

IndexKey index_key(const CpuCall& c) {
  return {c.rank.spec.model.indexer->head_dim, index_key_bytes(c.rank.spec.model)};
}

// Calls f(token, at) for cached tokens of a sequence, where `at` is the offset in the cache of the token's index key.
template <class F>
void each_index_key(const CpuCall& c, const std::vector<CachedRun>& runs, const F& f) {
  const Bytes row = cached_bytes(c.rank.spec, c.frame.layer), before = row - index_key_bytes(c.rank.spec.model);
  for (const CachedRun& run : runs) {
    for (std::int64_t t = 0; t < run.count; ++t) f(run.first + t, run.at + t * row + before);
  }
}

// Reads the keys of the index of a sample, rounded as the cache rounds them: first the cached ones, then the new ones.
std::vector<float> all_index_keys(const CpuCall& c, const IndexScores& s, const FloatMatrix& own, std::int64_t b) {
  const IndexKey format = index_key(c);
  std::vector<float> keys(static_cast<std::size_t>(s.key * s.head_dim));
  if (s.cached > 0) {
    const auto runs = c.state.generated->cache.runs(c.frame, c.sequence_of(b), 0, s.cached);
    each_index_key(c, runs, [&](std::int64_t token, Bytes at) {
      format.load(c.reads.back().data + at, keys.data() + token * s.head_dim);
    });
  }
  std::vector<std::byte> rounded(static_cast<std::size_t>(format.bytes));
  for (std::int64_t t = 0; t < s.query; ++t) {
    format.store(own.row(b * s.query + t), rounded.data());
    format.load(rounded.data(), keys.data() + (s.cached + t) * s.head_dim);
  }
  return keys;
}

// Sparse attention of one pass on one rank.
class IndexedAttention {
 public:
  IndexedAttention(const CpuCall& c, const FlashAttention& a) : c_(c), a_(a), at_(head_columns(c)) {}

  void run() const {
    const std::int64_t rows = a_.batch * a_.query, columns = at_.cached();
    const Values queries = c_.read(c_.reads[0], rows * at_.heads * at_.key);
    const Values out = c_.write(c_.writes[0], rows * at_.heads * at_.value), up = c_.weight(c_.weights.back());
    const auto q = matrix(queries.data(), rows, at_.heads * at_.key),
               y = matrix(out.data(), rows, at_.heads * at_.value);
    std::vector<float> own(static_cast<std::size_t>(rows * columns));
    gather_cached(c_, at_, c_.reads[1], c_.reads[2], matrix(own.data(), rows, columns));
    for (std::int64_t b = 0; b < a_.batch; ++b) {
      std::vector<float> keys =
          a_.cached > 0 ? cached_rows(c_, c_.reads.back(), c_.sequence_of(b), 0, columns).rows : std::vector<float>();
      keys.insert(keys.end(), own.begin() + b * a_.query * columns, own.begin() + (b + 1) * a_.query * columns);
      for (std::int64_t row = b * a_.query; row < (b + 1) * a_.query; ++row)
        attend(keys, row, rows_of(q, row, 1), up.data(), rows_of(y, row, 1));
    }
  }

 private:
  // Attention of all heads of one token to the keys of the tokens that the index chose for it.
  void attend(const std::vector<float>& keys, std::int64_t row, const FloatMatrix& q, float* up,
              const FloatMatrix& y) const {
    const std::int64_t columns = at_.cached();
    const std::int32_t* chosen = CpuCall::whole_numbers(c_.reads[3]) + row * a_.chosen;
    std::vector<float> seen;
    for (std::int64_t i = 0; i < a_.chosen && chosen[i] >= 0; ++i)
      seen.insert(seen.end(), keys.begin() + chosen[i] * columns, keys.begin() + (chosen[i] + 1) * columns);
    const auto count = static_cast<std::int64_t>(seen.size()) / columns;
    const FloatMatrix all = matrix(seen.data(), count, columns);
    for (std::int64_t h = 0; h < at_.heads; ++h) {
      const auto weights = matrix(up + h * (at_.nope + at_.value) * at_.rank, at_.nope + at_.value, at_.rank);
      const FloatMatrix of_head = columns_of(q, h * at_.key, at_.key);
      std::vector<float> query(static_cast<std::size_t>(columns)), result(static_cast<std::size_t>(at_.rank));
      kernels::multiply({}, 1, columns_of(of_head, 0, at_.nope), rows_of(weights, 0, at_.nope), 0,
                        matrix(query.data(), 1, at_.rank));
      std::copy_n(of_head.row(0) + at_.nope, at_.rope, query.data() + at_.rank);
      float* lse = CpuCall::floats(c_.writes[1]) + (row / a_.query * at_.heads + h) * a_.query + row % a_.query;
      kernels::attention_of_head(matrix(query.data(), 1, columns), all, columns_of(all, 0, at_.rank), scale(),
                                 {0, count - 1, 0}, false, matrix(result.data(), 1, at_.rank), lse);
      kernels::multiply({.b = true}, 1, matrix(result.data(), 1, at_.rank), rows_of(weights, at_.nope, at_.value), 0,
                        columns_of(y, h * at_.value, at_.value));
    }
  }

  float scale() const { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(at_.key))); }

  const CpuCall& c_;
  const FlashAttention& a_;
  const HeadColumns at_;
};

}  // namespace

void run_index_scores(const CpuCall& c, const IndexScores& s) {
  const std::int64_t rows = s.batch * s.query;
  const Values queries = c.read(c.reads[0], rows * s.heads * s.head_dim), own = c.read(c.reads[1], rows * s.head_dim),
               weights = c.read(c.reads[2], rows * s.heads);
  const auto q = matrix(queries.data(), rows, s.heads * s.head_dim), w = matrix(weights.data(), rows, s.heads);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    std::vector<float> keys = all_index_keys(c, s, matrix(own.data(), rows, s.head_dim), b);
    kernels::choose_tokens({s.heads, s.head_dim, s.top_k}, rows_of(q, b * s.query, s.query),
                           matrix(keys.data(), s.key, s.head_dim), rows_of(w, b * s.query, s.query), s.cached,
                           CpuCall::whole_numbers(c.writes[0]) + b * s.query * s.top_k);
  }
}

void run_indexed_attention(const CpuCall& c, const FlashAttention& a) { IndexedAttention(c, a).run(); }

// The tokens' other keys are in the cache already, so that they have their places.
void run_store_index_keys(const CpuCall& c) {
  const std::int64_t batch = c.rank.samples, tokens = c.sequence(), begin = c.first_position();
  const IndexKey format = index_key(c);
  const Values keys = c.read(c.reads[0], batch * tokens * format.elements);
  for (std::int64_t b = 0; b < batch; ++b) {
    const auto runs = c.state.generated->cache.runs(c.frame, c.sequence_of(b), begin, begin + tokens);
    each_index_key(c, runs, [&](std::int64_t token, Bytes at) {
      format.store(keys.data() + (b * tokens + token - begin) * format.elements, c.updates[0].data + at);
    });
  }
}

}  // namespace orrery
