// This file runs attention on the CPU, for queries and keys at any positions of the sequence. It also copies heads
// between packed query-key-value projections and the buffers that ranks of a context-parallel group exchange.
#include <algorithm>
#include <cmath>

#include "exec/host/host_call.h"
#include "kernels/cpu/attention.h"

namespace orrery {
namespace {

using kernels::columns_of;
using kernels::heads_of;
using kernels::matrix;
using FloatHeads = kernels::Heads<float>;

// Consecutive rows of one sample whose tokens are also consecutive in the sequence. A buffer of shape (members, batch,
// tokens of a rank) holds the rows of every member of the context-parallel group.
struct Run {
  // The rows begin at row `row` of those that rank `member` of the context-parallel group holds of the sample; the
  // token of the first row is at `position` in the sequence. count: number of rows.
  std::int64_t member = 0, row = 0;
  std::int64_t position = 0, count = 0;
};

std::vector<Run> runs_of(const CpuCall& c, std::int64_t first_block, std::int64_t blocks) {
  const Strategy& s = c.rank.spec.strategy;
  std::vector<Run> runs;
  for (std::int64_t m = 0; m < blocks * s.context_ulysses; ++m) {
    std::int64_t row = 0;
    for (const SequencePart& p : rank_parts(s, c.rank.spec.sequence, first_block * s.context_ulysses + m)) {
      runs.push_back({m, row, p.first, p.count});
      row += p.count;
    }
  }
  return runs;
}

// Returns a view of the heads [first, first + heads) in one packed buffer, for the rows (tokens) of all samples.
FloatHeads heads_in(const CpuCall& c, const Values& values, const Argument& a, std::int64_t rows, std::int64_t first,
                    std::int64_t heads, std::int64_t head_dim) {
  return heads_of(matrix(values.data(), rows, c.columns(a, rows)), 1, first, heads, head_dim);
}

void clear(const FloatHeads& heads) {
  for (std::int64_t h = 0; h < heads.heads; ++h) {
    const auto m = heads.of(0, h);
    for (std::int64_t r = 0; r < m.rows; ++r) std::fill_n(m.row(r), m.columns, 0.0F);
  }
}

// One attention op. For each sample and head it calls the kernel for each pair of a contiguous range of query rows and
// a contiguous range of key rows.
class AttentionCall {
 public:
  AttentionCall(const CpuCall& c, const FlashAttention& a) : c_(c), a_(a) {
    const Strategy& s = c.rank.spec.strategy;
    const std::int64_t block = c.rank.context / s.context_ulysses;
    const std::vector<Run> keys = a.key == c.rank.spec.sequence
                                      ? runs_of(c, 0, s.context_ring)
                                      : runs_of(c, (block - a.hops + s.context_ring) % s.context_ring, 1);
    std::vector<Seen> whole;
    for (const Run& q : runs_of(c, block, 1)) whole.push_back({q, keys});
    for (std::int64_t b = 0; b < a.batch; ++b) seen_.push_back(c.rank.spec.documents ? documents(b) : whole);
  }

  void run() const { a_.direction == Direction::forward ? forward() : backward(); }

 private:
  // A range of consecutive queries, and the ranges of keys that these queries may attend to.
  struct Seen {
    Run queries;
    std::vector<Run> keys;
  };
  // Returns the documents of a packed sample. The tokens of a document attend only to tokens of that document.
  std::vector<Seen> documents(std::int64_t in_batch) const {
    const std::int64_t sample = c_.sample(in_batch) % c_.rank.spec.strategy.global_batch;
    std::vector<Seen> list;
    std::int64_t row = 0;
    for (const std::int64_t length : documents_of(c_.rank.spec, sample)) {
      const Run run = {0, row, 0, length};
      list.push_back({run, {run}});
      row += length;
    }
    return list;
  }
  std::int64_t query_rows() const { return a_.batch * a_.query; }
  std::int64_t key_rows() const { return a_.batch * a_.key; }
  Values whole(const Argument& a, Values::Mode mode) const { return c_.view(a, size(a), mode); }
  std::int64_t size(const Argument& a) const { return a.bytes / c_.rank.plan.element_bytes; }

  // Views of queries, keys and values, or of their gradients. The three are adjacent columns in the output of the
  // query-key-value projection. With head norms (QK norm), queries and keys are in an operand of their own, which
  // precedes the projection's. Under ring attention, keys and values may also come in a buffer without queries.
  struct Parts {
    FloatHeads q, k, v;
  };
  Parts parts(const Argument& first, const Values& in_first, const Argument& last, const Values& in_last) const {
    const auto heads = [&](const Argument& a, const Values& v, std::int64_t rows, std::int64_t at, std::int64_t n) {
      return heads_in(c_, v, a, rows, at, n, a_.head_dim);
    };
    const std::int64_t kv = a_.kv_heads;
    const FloatHeads q = heads(first, in_first, query_rows(), 0, a_.heads);
    if (a_.keys_apart) {  // keys lie before values in the packed buffer; value heads may have fewer columns
      const auto packed = matrix(in_last.data(), key_rows(), kv * (a_.head_dim + a_.value_dim));
      const auto values = columns_of(packed, kv * a_.head_dim, kv * a_.value_dim);
      return {q, heads(last, in_last, key_rows(), 0, kv), heads_of(values, 1, 0, kv, a_.value_dim)};
    }
    return {q, heads(first, in_first, key_rows(), a_.heads, kv), heads(last, in_last, key_rows(), a_.heads + kv, kv)};
  }
  FloatHeads of_queries(const Argument& a, const Values& v) const {
    return heads_in(c_, v, a, query_rows(), 0, a_.heads, a_.value_dim);
  }

  void forward() const {
    const Argument &first = c_.reads.front(), &last = c_.reads.back();
    const Values in_first = whole(first, Values::Mode::read), in_last = whole(last, Values::Mode::read);
    const auto& results = a_.merges ? c_.updates : c_.writes;
    const Values y = whole(results[0], a_.merges ? Values::Mode::update : Values::Mode::write);
    const Parts in = parts(first, in_first, last, in_last);
    const FloatHeads out = of_queries(results[0], y);
    float* lse = CpuCall::floats(results[1]);
    for_heads([&](std::int64_t b, std::int64_t h, std::int64_t kv) {
      for (const Seen& seen : seen_[b]) {
        const Run& q = seen.queries;
        bool merges = a_.merges;
        for (const Run& k : seen.keys) {
          if (merges && !sees(q, k)) continue;
          kernels::attention_of_head(rows(in.q, h, b, q), rows(in.k, kv, b, k), rows(in.v, kv, b, k), scale(),
                                     mask(q, k), merges, rows(out, h, b, q), lse + row_of_statistics(b, h, q));
          merges = true;
        }
      }
    });
  }

  void backward() const {
    // n: number of operands that the forward pass reads too. After them the backward pass reads three: the output y,
    // its softmax statistics, and its gradient.
    const std::size_t n = c_.reads.size() - 3;
    const Argument &first = c_.reads[0], &last = c_.reads[n - 1];
    const Values in_first = whole(first, Values::Mode::read), in_last = whole(last, Values::Mode::read);
    const Values y = whole(c_.reads[n], Values::Mode::read), dy = whole(c_.reads[n + 2], Values::Mode::read);
    const Argument &to_first = a_.merges ? c_.updates[0] : c_.writes[0], &to_last = c_.writes.back();
    // The buffers of the gradients may have further columns, which this op must leave unchanged, so they are updated in
    // place.
    const Values out_first = whole(to_first, Values::Mode::update);
    const Values out_last = whole(to_last, Values::Mode::update);
    const Parts in = parts(first, in_first, last, in_last);
    const bool same = to_first.data == to_last.data;
    const Parts out = parts(to_first, out_first, to_last, same ? out_first : out_last);
    const FloatHeads values = of_queries(c_.reads[n], y), dvalues = of_queries(c_.reads[n + 2], dy);
    const float* lse = CpuCall::floats(c_.reads[n + 1]);
    if (!a_.merges) clear(out.q);
    clear(out.k);
    clear(out.v);
    for_heads([&](std::int64_t b, std::int64_t h, std::int64_t kv) {
      for (const Seen& seen : seen_[b]) {
        const Run& q = seen.queries;
        for (const Run& k : seen.keys) {
          if (!sees(q, k)) continue;
          kernels::add_attention_gradient_of_head({rows(in.q, h, b, q), rows(in.k, kv, b, k), rows(in.v, kv, b, k),
                                                   rows(values, h, b, q), lse + row_of_statistics(b, h, q)},
                                                  rows(dvalues, h, b, q), scale(), mask(q, k), rows(out.q, h, b, q),
                                                  rows(out.k, kv, b, k), rows(out.v, kv, b, k));
        }
      }
    });
  }

  template <class F>
  void for_heads(const F& f) const {
    for (std::int64_t b = 0; b < a_.batch; ++b) {
      for (std::int64_t h = 0; h < a_.heads; ++h) f(b, h, h / (a_.heads / a_.kv_heads));
    }
  }
  kernels::Matrix<float> rows(const FloatHeads& heads, std::int64_t head, std::int64_t sample, const Run& run) const {
    return rows_of(heads.of(0, head), (run.member * a_.batch + sample) * c_.sequence() + run.row, run.count);
  }
  // Returns the index of the softmax statistics of the range's first query, in sample b and head h. The statistics have
  // the shape (batch, heads, queries).
  std::int64_t row_of_statistics(std::int64_t b, std::int64_t h, const Run& q) const {
    return (b * a_.heads + h) * a_.query + q.member * c_.sequence() + q.row;
  }
  kernels::CausalMask mask(const Run& q, const Run& k) const { return {a_.window, q.position, k.position}; }
  bool sees(const Run& q, const Run& k) const {
    return kernels::visible_keys(mask(q, k), q.count - 1, k.count).last > 0 &&
           kernels::visible_keys(mask(q, k), 0, k.count).first < k.count;
  }
  float scale() const { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(a_.head_dim))); }

  const CpuCall& c_;
  const FlashAttention& a_;
  std::vector<std::vector<Seen>> seen_;  // for each sample of the micro-batch, its ranges of queries with their keys
};

void add_heads(const FloatHeads& from, std::int64_t first, const FloatHeads& to, std::int64_t at, std::int64_t n) {
  for (std::int64_t h = 0; h < n; ++h) {
    const auto x = from.of(0, first + h), y = to.of(0, at + h);
    for (std::int64_t r = 0; r < x.rows; ++r) {
      for (std::int64_t i = 0; i < x.columns; ++i) y.row(r)[i] += x.row(r)[i];
    }
  }
}

}  // namespace

void run_attention(const CpuCall& c, const FlashAttention& a) {
  if (c.state.generated) return a.chosen > 0 ? run_indexed_attention(c, a) : run_cached_attention(c, a);
  if (c.model().mla && !a.keys_apart) return run_latent_attention(c, a);
  AttentionCall(c, a).run();
}

void run_move_heads(const CpuCall& c, const MoveHeads& m) {
  const bool back = m.direction == Direction::backward;
  const auto& packed = back ? (c.writes.empty() ? c.updates : c.writes) : c.reads;
  const Argument& travels = back ? c.reads[0] : c.writes[0];
  const auto whole = [&](const Argument& a, bool written) {
    return c.view(a, a.bytes / c.rank.plan.element_bytes, written ? Values::Mode::update : Values::Mode::read);
  };
  const Values first = whole(packed.front(), back), last = whole(packed.back(), back), other = whole(travels, !back);
  const bool one = packed.size() == 1;
  const auto in_packed = [&](bool values, std::int64_t at, std::int64_t n) {
    const Argument& a = values ? packed.back() : packed.front();
    return heads_in(c, values && !one ? last : first, a, m.rows, at, n, m.head_dim);
  };
  const FloatHeads q = in_packed(false, 0, m.queries ? m.heads : 0);
  const FloatHeads k = in_packed(false, m.heads, m.kv_heads), v = in_packed(true, m.heads + m.kv_heads, m.kv_heads);
  if (back) {
    for (const FloatHeads& h : {q, k, v}) clear(h);
  }
  const std::int64_t mine = m.member_heads(), kv = m.member_kv_heads();
  for (std::int64_t i = 0; i < m.members; ++i) {
    const FloatHeads part =
        heads_of(matrix(other.data() + i * m.rows * m.columns(), m.rows, m.columns()), 1, 0, mine + 2 * kv, m.head_dim);
    if (!back) clear(part);
    const auto move = [&](const FloatHeads& all, std::int64_t at, std::int64_t in_part, std::int64_t n) {
      back ? add_heads(part, in_part, all, at, n) : add_heads(all, at, part, in_part, n);
    };
    const std::int64_t first_kv = i * m.kv_heads / m.members;
    move(q, i * mine, 0, mine);
    move(k, first_kv, mine, kv);
    move(v, first_kv, mine + kv, kv);
  }
}

}  // namespace orrery
