// This file reads and writes a generation's cache of keys and values on the CPU.
#include "exec/cpu/cached_rows.h"

#include <utility>

namespace orrery {

using kernels::matrix;
using FloatMatrix = kernels::Matrix<float>;

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

// Calls f(token, count, at) for the tokens of a run, counted from its first, that lie one after another in the cache:
// all of them, or single ones where a key of the index follows each.
template <class F>
static void each_stretch(const CpuCall& c, const CachedRun& run, const F& f) {
  if (!c.rank.spec.model.indexer) return f(0, run.count, run.at);
  const Bytes row = cached_bytes(c.rank.spec, c.frame.layer);
  for (std::int64_t token = 0; token < run.count; ++token) f(token, 1, run.at + token * row);
}

CachedRows cached_rows(const CpuCall& c, const Argument& cache, std::int64_t sequence, std::int64_t window,
                       std::int64_t columns) {
  const CacheFormat format(c, c.rank.spec.model.head_dim);
  const std::int64_t end = c.pass().cached;
  CachedRows all = {.first = window > 0 ? std::max<std::int64_t>(0, end - window + 1) : 0};
  all.count = end - all.first;
  all.rows.resize(static_cast<std::size_t>(all.count * columns));
  for (const CachedRun& run : c.state.generated->cache.runs(c.frame, sequence, all.first, end)) {
    float* to = all.rows.data() + (run.first - all.first) * columns;
    each_stretch(c, run, [&](std::int64_t token, std::int64_t count, Bytes at) {
      format.load(cache.data + at, count * columns, to + token * columns);
    });
  }
  return all;
}

void gather_cached(const CpuCall& c, const HeadColumns& at, const Argument& first, const Argument& last,
                   const FloatMatrix& to) {
  const auto view = [&](const Argument& a) { return c.read(a, a.bytes / c.rank.plan.element_bytes); };
  const std::int64_t rows = to.rows;
  const Values in_first = view(first), in_last = view(last);
  const FloatMatrix x = matrix(in_first.data(), rows, c.columns(first, rows)),
                    y = matrix(in_last.data(), rows, c.columns(last, rows));
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

void run_store_keys(const CpuCall& c) {
  const HeadColumns at = head_columns(c);
  const std::int64_t batch = c.rank.samples, tokens = c.sequence(), rows = batch * tokens, columns = at.cached();
  std::vector<float> kept(static_cast<std::size_t>(rows * columns));
  gather_cached(c, at, c.reads[0], c.reads.back(), matrix(kept.data(), rows, columns));
  const Argument& cache = c.updates[0];
  const CacheFormat format(c, at.key);
  const std::int64_t begin = c.first_position();
  for (std::int64_t b = 0; b < batch; ++b) {
    for (const CachedRun& run : c.state.generated->cache.store(c.frame, c.sequence_of(b), begin, begin + tokens)) {
      const float* from = kept.data() + (b * tokens + run.first - begin) * columns;
      each_stretch(c, run, [&](std::int64_t token, std::int64_t count, Bytes to) {
        format.store(from + token * columns, count * columns, cache.data + to);
      });
    }
  }
}

}  // namespace orrery
