// This file runs attention of a generation's pass on the CPU: the queries of the new tokens attend to the cached keys,
// then to the keys of the new tokens. It also copies the new keys and values into the cache.
#include <algorithm>
#include <cmath>

#include "exec/host/host_call.h"
#include "kernels/common/float8.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/weight_codes.h"

namespace orrery {
namespace {

using kernels::columns_of;
using kernels::matrix;
using FloatMatrix = kernels::Matrix<float>;

// The columns of one rank's heads in the rows of its activations, and of a token in the cache.
struct HeadColumns {
  std::int64_t heads = 0, kv_heads = 0, key = 0, value = 0;
  std::int64_t nope = 0, rope = 0, rank = 0;  // latent attention: parts of a key, and elements of a compressed vector

  bool latent() const { return rank > 0; }
  std::int64_t cached() const { return latent() ? rank + rope : kv_heads * (key + value); }
};

HeadColumns head_columns(const CpuCall& c) {
  const Model& m = c.rank.spec.model;
  const std::int64_t tensor = c.head_parts();
  HeadColumns h = {m.heads / tensor, std::max<std::int64_t>(1, m.kv_heads / tensor), m.head_dim, m.head_dim};
  if (!m.mla) return h;
  h.kv_heads = h.heads;
  h.value = m.mla->v_head_dim;
  h.nope = m.mla->qk_nope_head_dim;
  h.rope = m.mla->qk_rope_head_dim;
  h.rank = m.mla->kv_lora_rank;
  return h;
}

// The format of 16-bit numbers in the cache, which may be another than that of activations.
kernels::Format16 cached_format(const CpuCall& c) {
  return c.rank.spec.generation->kv_precision == Precision::fp16 ? kernels::Format16::fp16 : kernels::Format16::bf16;
}

// How keys and values lie in the cache: as numbers of 32 or 16 bits, in E4M3, or as codes of whole numbers, which have
// a scale for each vector (a head's key or value).
class CacheFormat {
 public:
  CacheFormat(const CpuCall& c, std::int64_t vector)
      : generation_(*c.rank.spec.generation), vector_(vector), format16_(cached_format(c)) {}

  bool narrow() const { return is_eight_bit(generation_.kv_precision); }

  void store(const float* from, std::int64_t n, std::byte* to) const {
    if (generation_.kv_precision == Precision::fp8) {
      for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<std::byte>(kernels::to_e4m3(from[i]));
    } else if (has_kv_scales(generation_)) {
      for (std::int64_t v = 0; v < n / vector_; ++v)
        kernels::quantize_vector(bits(), vector_, from + v * vector_, to + v * kv_vector_bytes(generation_, vector_));
    } else {
      const Values stored(to, n, kv_vector_bytes(generation_, 1), format16_, Values::Mode::write);
      std::copy_n(from, n, stored.data());
    }
  }

  void load(std::byte* from, std::int64_t n, float* to) const {
    if (generation_.kv_precision == Precision::fp8) {
      for (std::int64_t i = 0; i < n; ++i) to[i] = kernels::from_e4m3(static_cast<std::uint8_t>(from[i]));
    } else if (has_kv_scales(generation_)) {
      for (std::int64_t v = 0; v < n / vector_; ++v)
        kernels::widen_vector(bits(), vector_, from + v * kv_vector_bytes(generation_, vector_), to + v * vector_);
    } else {
      const Values stored(from, n, kv_vector_bytes(generation_, 1), format16_, Values::Mode::read);
      std::copy_n(stored.data(), n, to);
    }
  }

  // Rounds rows, each a vector of the cache, to what the cache would hold of them.
  void round(const FloatMatrix& x) const {
    std::vector<std::byte> stored(static_cast<std::size_t>(kv_vector_bytes(generation_, x.columns)));
    for (std::int64_t r = 0; r < x.rows; ++r) {
      store(x.row(r), x.columns, stored.data());
      load(stored.data(), x.columns, x.row(r));
    }
  }

 private:
  int bits() const { return generation_.kv_precision == Precision::int8 ? 8 : 4; }

  const Generation& generation_;
  std::int64_t vector_;
  kernels::Format16 format16_;
};

// The cached rows of one sequence, as floats: all tokens that a query of the pass can see.
struct CachedRows {
  std::int64_t first = 0, count = 0;
  std::vector<float> rows;
};

CachedRows cached_rows(const CpuCall& c, const Argument& cache, std::int64_t sequence, std::int64_t window,
                       std::int64_t columns) {
  const CacheFormat format(c, c.rank.spec.model.head_dim);
  const std::int64_t end = c.pass().cached;
  CachedRows all = {.first = window > 0 ? std::max<std::int64_t>(0, end - window + 1) : 0};
  all.count = end - all.first;
  all.rows.resize(static_cast<std::size_t>(all.count * columns));
  for (const CachedRun& run : c.state.generated->cache.runs(c.frame, sequence, all.first, end)) {
    format.load(cache.data + run.at, run.count * columns, all.rows.data() + (run.first - all.first) * columns);
  }
  return all;
}

// Attention of one pass on one rank.
class CachedAttention {
 public:
  CachedAttention(const CpuCall& c, const FlashAttention& a) : c_(c), a_(a), at_(head_columns(c)) {}

  void run() const {
    const Argument& first = c_.reads[0];
    // With head norms, or latent attention, the queries have a buffer of their own; the last operand may be the cache.
    const Argument& last = c_.reads[a_.cached > 0 ? c_.reads.size() - 2 : c_.reads.size() - 1];
    const Values in_first = whole(first, Values::Mode::read), in_last = whole(last, Values::Mode::read);
    const Values out = whole(c_.writes[0], Values::Mode::write);
    const auto own = [&](const Argument& a, const Values& v) {
      return matrix(v.data(), rows(), c_.columns(a, rows()));
    };
    std::vector<float> lse(static_cast<std::size_t>(a_.query));
    const CacheFormat format(c_, at_.key);
    for (std::int64_t b = 0; b < a_.batch; ++b) {
      const CachedRows cached =
          a_.cached > 0 ? cached_rows(c_, c_.reads.back(), c_.sequence_of(b), a_.window, at_.cached()) : CachedRows{};
      for (std::int64_t h = 0; h < at_.heads; ++h) {
        Head head = head_of(of_sample(own(first, in_first), b), of_sample(own(last, in_last), b), h);
        std::vector<float> keys, values;
        if (format.narrow()) {
          head.k = rounded(format, head.k, keys);
          head.v = rounded(format, head.v, values);
        }
        const FloatMatrix y = columns_of(of_sample(own(c_.writes[0], out), b), h * at_.value, at_.value);
        if (cached.count > 0) attend_cached(head, cached, h, y, lse.data());
        kernels::attention_of_head(head.q, head.k, head.v, scale(), {a_.window, 0, 0}, cached.count > 0, y, lse.data());
        std::copy(lse.begin(), lse.end(), CpuCall::floats(c_.writes[1]) + (b * at_.heads + h) * a_.query);
      }
    }
  }

 private:
  struct Head {
    FloatMatrix q, k, v;
  };

  // Returns a copy of rows, in `copy`, rounded as the cache rounds them, so that attention reads the same numbers of a
  // token whether it came in this pass or in an earlier one.
  static FloatMatrix rounded(const CacheFormat& format, const FloatMatrix& x, std::vector<float>& copy) {
    copy.resize(static_cast<std::size_t>(x.rows * x.columns));
    const FloatMatrix y = matrix(copy.data(), x.rows, x.columns);
    for (std::int64_t r = 0; r < x.rows; ++r) std::copy_n(x.row(r), x.columns, y.row(r));
    format.round(y);
    return y;
  }

  std::int64_t rows() const { return a_.batch * a_.query; }
  Values whole(const Argument& a, Values::Mode mode) const {
    return c_.view(a, a.bytes / c_.rank.plan.element_bytes, mode);
  }
  FloatMatrix of_sample(const FloatMatrix& all, std::int64_t b) const { return rows_of(all, b * a_.query, a_.query); }
  float scale() const { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(at_.key))); }
  std::int64_t kv_head(std::int64_t head) const { return head / (at_.heads / at_.kv_heads); }

  Head head_of(const FloatMatrix& first, const FloatMatrix& last, std::int64_t h) const {
    const std::int64_t kv = kv_head(h);
    const FloatMatrix q = columns_of(first, h * at_.key, at_.key);
    if (at_.latent())
      return {q, columns_of(last, h * at_.key, at_.key),
              columns_of(last, at_.heads * at_.key + h * at_.value, at_.value)};
    return {q, columns_of(first, (at_.heads + kv) * at_.key, at_.key),
            columns_of(last, (at_.heads + at_.kv_heads + kv) * at_.key, at_.key)};
  }

  // Attention of one head to the cached tokens of a sequence.
  void attend_cached(const Head& head, const CachedRows& cached, std::int64_t h, const FloatMatrix& y,
                     float* lse) const {
    const kernels::CausalMask mask = {a_.window, c_.pass().cached, cached.first};
    const FloatMatrix all = matrix(const_cast<float*>(cached.rows.data()), cached.count, at_.cached());
    if (at_.latent()) return attend_compressed(head, all, mask, h, y, lse);
    const std::int64_t kv = kv_head(h);
    kernels::attention_of_head(head.q, columns_of(all, kv * at_.key, at_.key),
                               columns_of(all, at_.kv_heads * at_.key + kv * at_.value, at_.value), scale(), mask,
                               false, y, lse);
  }

  // The same in latent attention. The up projection of keys is applied to the query, that of values to the result
  // (DeepSeek-V2, arXiv 2405.04434, section 2.1.2).
  void attend_compressed(const Head& head, const FloatMatrix& cached, const kernels::CausalMask& mask, std::int64_t h,
                         const FloatMatrix& y, float* lse) const {
    const Values weight = c_.weight(c_.weights.back());
    const auto up = matrix(weight.data() + h * (at_.nope + at_.value) * at_.rank, at_.nope + at_.value, at_.rank);
    std::vector<float> queries(static_cast<std::size_t>(a_.query * at_.cached()));
    const FloatMatrix q = matrix(queries.data(), a_.query, at_.cached());
    kernels::multiply({}, 1, columns_of(head.q, 0, at_.nope), rows_of(up, 0, at_.nope), 0, columns_of(q, 0, at_.rank));
    for (std::int64_t r = 0; r < a_.query; ++r) std::copy_n(head.q.row(r) + at_.nope, at_.rope, q.row(r) + at_.rank);
    std::vector<float> results(static_cast<std::size_t>(a_.query * at_.rank));
    const FloatMatrix z = matrix(results.data(), a_.query, at_.rank);
    kernels::attention_of_head(q, cached, columns_of(cached, 0, at_.rank), scale(), mask, false, z, lse);
    kernels::multiply({.b = true}, 1, z, rows_of(up, at_.nope, at_.value), 0, y);
  }

  const CpuCall& c_;
  const FlashAttention& a_;
  const HeadColumns at_;
};

// Copies the columns of the new rows that the cache keeps into `to`.
void gather_cached(const CpuCall& c, const HeadColumns& at, std::int64_t rows, const FloatMatrix& to) {
  const auto view = [&](const Argument& a) { return c.read(a, a.bytes / c.rank.plan.element_bytes); };
  const Values first = view(c.reads[0]), last = view(c.reads.back());
  const FloatMatrix x = matrix(first.data(), rows, c.columns(c.reads[0], rows)),
                    y = matrix(last.data(), rows, c.columns(c.reads.back(), rows));
  for (std::int64_t r = 0; r < rows; ++r) {
    if (at.latent()) {  // the rotated part of a key is that of every head
      std::copy_n(y.row(r), at.rank, to.row(r));
      std::copy_n(x.row(r) + at.nope, at.rope, to.row(r) + at.rank);
    } else {
      const std::int64_t keys = at.kv_heads * at.key;
      std::copy_n(x.row(r) + at.heads * at.key, keys, to.row(r));
      std::copy_n(y.row(r) + at.heads * at.key + keys, keys, to.row(r) + keys);
    }
  }
}

}  // namespace

void run_cached_attention(const CpuCall& c, const FlashAttention& a) { CachedAttention(c, a).run(); }

void run_store_keys(const CpuCall& c) {
  const HeadColumns at = head_columns(c);
  const std::int64_t batch = c.rank.samples, tokens = c.sequence(), rows = batch * tokens, columns = at.cached();
  std::vector<float> kept(static_cast<std::size_t>(rows * columns));
  gather_cached(c, at, rows, matrix(kept.data(), rows, columns));
  const Argument& cache = c.updates[0];
  const CacheFormat format(c, at.key);
  const std::int64_t begin = c.first_position();
  for (std::int64_t b = 0; b < batch; ++b) {
    for (const CachedRun& run : c.state.generated->cache.store(c.frame, c.sequence_of(b), begin, begin + tokens)) {
      format.store(kept.data() + (b * tokens + run.first - begin) * columns, run.count * columns, cache.data + run.at);
    }
  }
}

}  // namespace orrery
