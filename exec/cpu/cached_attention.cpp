// This file runs attention of a generation's pass on the CPU: the queries of the new tokens attend to the cached keys,
// then to the keys of the new tokens.
#include <algorithm>
#include <cmath>

#include "exec/cpu/cached_rows.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/gemm.h"

namespace orrery {
namespace {

using kernels::columns_of;
using kernels::matrix;
using FloatMatrix = kernels::Matrix<float>;

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

}  // namespace

void run_cached_attention(const CpuCall& c, const FlashAttention& a) { CachedAttention(c, a).run(); }

}  // namespace orrery
