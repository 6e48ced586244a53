#include "kernels/cpu/attention.h"

#include <gtest/gtest.h>

#include "kernels/reference/attention.h"
#include "tests/kernels/random.h"

namespace orrery::kernels {
namespace {

struct Shape {
  std::int64_t batch, query, key, heads, kv_heads, head_dim;
  CausalMask mask = {};
};

// Odd sizes; several tiles; grouped queries; a window; a rank's part of a sequence; queries that see no key.
const Shape kShapes[] = {{1, 1, 1, 1, 1, 4},
                         {2, 17, 17, 4, 4, 8},
                         {1, 131, 131, 4, 2, 16},
                         {2, 300, 300, 2, 1, 8},
                         {1, 290, 290, 2, 2, 8, {.window = 40}},
                         {1, 20, 60, 2, 1, 8, {.query_offset = 40}},
                         {1, 150, 290, 2, 1, 8, {.window = 33, .query_offset = 140}},
                         {1, 40, 40, 2, 1, 8, {.query_offset = 10, .key_offset = 30}}};
const Shape kSmall[] = {{1, 5, 5, 2, 1, 3}, {2, 4, 7, 2, 2, 2, {.window = 2, .query_offset = 3}}};

// All operands of attention in one type. q, and k and v, lie in packed buffers.
template <class T>
struct Case {
  explicit Case(const Shape& s) : shape(s) {
    const auto fill = [](std::int64_t n, std::uint64_t seed) {
      const std::vector<float> x = random_floats(n, seed);
      return std::vector<T>(x.begin(), x.end());
    };
    const std::int64_t queries = s.batch * s.query, keys = s.batch * s.key;
    const std::int64_t width = (s.heads + 2 * s.kv_heads) * s.head_dim;
    query = fill(queries * width, 1);
    key = fill(keys * width, 2);
    dout = fill(queries * s.heads * s.head_dim, 3);
    out.resize(dout.size());
    dquery.resize(query.size());
    dkey.resize(key.size());
    lse.resize(queries * s.heads);
  }
  Heads<T> part(std::vector<T>& x, std::int64_t rows, std::int64_t first, std::int64_t heads) {
    const std::int64_t width = (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
    return heads_of(matrix(x.data(), shape.batch * rows, width), shape.batch, first, heads, shape.head_dim);
  }
  Heads<T> q() { return part(query, shape.query, 0, shape.heads); }
  Heads<T> k() { return part(key, shape.key, shape.heads, shape.kv_heads); }
  Heads<T> v() { return part(key, shape.key, shape.heads + shape.kv_heads, shape.kv_heads); }
  Heads<T> dq() { return part(dquery, shape.query, 0, shape.heads); }
  Heads<T> dk() { return part(dkey, shape.key, shape.heads, shape.kv_heads); }
  Heads<T> dv() { return part(dkey, shape.key, shape.heads + shape.kv_heads, shape.kv_heads); }
  Heads<T> of_values(std::vector<T>& x) {
    const std::int64_t width = shape.heads * shape.head_dim;
    return heads_of(matrix(x.data(), shape.batch * shape.query, width), shape.batch, 0, shape.heads, shape.head_dim);
  }

  Shape shape;
  std::vector<T> query, key, dout, out, dquery, dkey, lse;
};

constexpr double kScale = 0.75;

void expect_reference(const Shape& shape) {
  Case<float> f(shape);
  Case<double> d(shape);
  attention(f.q(), f.k(), f.v(), kScale, shape.mask, f.of_values(f.out), f.lse.data());
  reference::attention<double>(d.q(), d.k(), d.v(), kScale, shape.mask, d.of_values(d.out));
  EXPECT_LT(relative_error(f.out, d.out), kFloatError);
  const AttentionSaved saved = {f.q(), f.k(), f.v(), f.of_values(f.out), f.lse.data()};
  attention_gradient(saved, f.of_values(f.dout), kScale, shape.mask, f.dq(), f.dk(), f.dv());
  reference::attention_gradient<double>(d.q(), d.k(), d.v(), d.of_values(d.dout), kScale, shape.mask, d.dq(), d.dk(),
                                        d.dv());
  EXPECT_LT(relative_error(f.dquery, d.dquery), kFloatError);
  EXPECT_LT(relative_error(f.dkey, d.dkey), kFloatError);
}

// The mask is compared with its definition, query by query and key by key.
TEST(Attention, AQuerySeesItselfAndWhatIsBeforeItInTheWindow) {
  for (const Shape& shape : kShapes) {
    const CausalMask& m = shape.mask;
    for (std::int64_t query = 0; query < shape.query; ++query) {
      const KeyRange range = visible_keys(m, query, shape.key);
      for (std::int64_t key = 0; key < shape.key; ++key) {
        const std::int64_t distance = (m.query_offset + query) - (m.key_offset + key);
        const bool sees = distance >= 0 && (m.window == 0 || distance < m.window);
        ASSERT_EQ(key >= range.first && key < range.last, sees) << query << " " << key;
      }
    }
  }
}

TEST(Attention, MatchesItsReference) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(&shape - kShapes);
    expect_reference(shape);
  }
}

TEST(Attention, ReferenceGradientsAreDerivatives) {
  for (const Shape& shape : kSmall) {
    Case<double> c(shape);
    reference::attention_gradient<double>(c.q(), c.k(), c.v(), c.of_values(c.dout), kScale, shape.mask, c.dq(), c.dk(),
                                          c.dv());
    const auto with = [&](const std::vector<double>& query, const std::vector<double>& key) {
      Case<double> moved(shape);
      moved.query = query;
      moved.key = key;
      reference::attention<double>(moved.q(), moved.k(), moved.v(), kScale, shape.mask, moved.of_values(moved.out));
      return moved.out;
    };
    const auto of_query = [&](const std::vector<double>& x) { return with(x, c.key); };
    const auto of_key = [&](const std::vector<double>& x) { return with(c.query, x); };
    EXPECT_LT(relative_error(c.dquery, finite_differences(c.query, c.dout, of_query)), kDifferenceError);
    EXPECT_LT(relative_error(c.dkey, finite_differences(c.key, c.dout, of_key)), kDifferenceError);
  }
}

TEST(Attention, LogSumExpIsThatOfTheScores) {
  Case<double> d({1, 9, 9, 2, 1, 4});
  Case<float> f(d.shape);
  attention(f.q(), f.k(), f.v(), kScale, {}, f.of_values(f.out), f.lse.data());
  std::vector<double> scores(2 * 9 * 9);
  reference::head_scores<double>(d.q(), d.k(), kScale, scores.data());
  for (std::int64_t r = 0; r < 18; ++r) {
    double total = 0;
    for (std::int64_t c = 0; c <= r % 9; ++c) total += std::exp(scores[r * 9 + c]);
    EXPECT_NEAR(f.lse[r], std::log(total), 1e-5);
  }
}

TEST(Attention, StaysFiniteForLargeScores) {
  Case<float> f({1, 200, 200, 1, 1, 8});
  for (float& x : f.query) x *= 100;
  for (float& x : f.key) x *= 100;
  attention(f.q(), f.k(), f.v(), 1, {}, f.of_values(f.out), f.lse.data());
  for (const float x : f.out) EXPECT_LE(std::abs(x), 101);
}

// Tensor parallel: a rank has some of the heads and the key heads that go with them.
TEST(Attention, HeadsSplitOverRanksGiveTheWhole) {
  Case<float> whole({2, 70, 70, 4, 2, 8}), split(whole.shape);
  const CausalMask mask;
  const auto some = [](Heads<float> x, std::int64_t rank) {
    x.data += rank * x.heads / 2 * x.head_dim;
    x.heads /= 2;
    return x;
  };
  attention(whole.q(), whole.k(), whole.v(), kScale, mask, whole.of_values(whole.out), whole.lse.data());
  const AttentionSaved saved = {whole.q(), whole.k(), whole.v(), whole.of_values(whole.out), whole.lse.data()};
  attention_gradient(saved, whole.of_values(whole.dout), kScale, mask, whole.dq(), whole.dk(), whole.dv());
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    std::vector<float> lse(2 * 2 * 70);
    const auto q = some(split.q(), rank), k = some(split.k(), rank), v = some(split.v(), rank);
    const auto out = some(split.of_values(split.out), rank);
    attention(q, k, v, kScale, mask, out, lse.data());
    attention_gradient({q, k, v, out, lse.data()}, some(split.of_values(split.dout), rank), kScale, mask,
                       some(split.dq(), rank), some(split.dk(), rank), some(split.dv(), rank));
  }
  EXPECT_LT(relative_error(split.out, whole.out), kFloatError);
  EXPECT_LT(relative_error(split.dquery, whole.dquery), kFloatError);
  EXPECT_LT(relative_error(split.dkey, whole.dkey), kFloatError);
}

// Context parallel: a rank has some of the queries and all keys.
TEST(Attention, QueriesSplitOverRanksGiveTheWhole) {
  Case<float> c({1, 150, 150, 2, 1, 8});
  attention(c.q(), c.k(), c.v(), kScale, {}, c.of_values(c.out), c.lse.data());
  std::vector<float> out(c.out.size()), lse(c.lse.size());
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    Heads<float> q = c.q(), y = c.of_values(out);
    q.data += rank * 50 * q.stride;
    y.data += rank * 50 * y.stride;
    q.rows = y.rows = 50;
    attention(q, c.k(), c.v(), kScale, {.query_offset = rank * 50}, y, lse.data());
  }
  EXPECT_LT(relative_error(out, c.out), kFloatError);
}

// Ring attention: keys come in parts, in any order, and a query may see no key of a part.
TEST(Attention, KeysInPartsGiveTheWhole) {
  Case<float> whole({1, 150, 150, 1, 1, 8}), parts(whole.shape);
  for (const std::int64_t window : {0, 40}) {
    const CausalMask all = {.window = window};
    attention(whole.q(), whole.k(), whole.v(), kScale, all, whole.of_values(whole.out), whole.lse.data());
    const AttentionSaved saved = {whole.q(), whole.k(), whole.v(), whole.of_values(whole.out), whole.lse.data()};
    attention_gradient(saved, whole.of_values(whole.dout), kScale, all, whole.dq(), whole.dk(), whole.dv());
    const Matrix<float> q = parts.q().of(0, 0), out = parts.of_values(parts.out).of(0, 0);
    const auto rows = [](const Heads<float>& heads, std::int64_t part) {
      return rows_of(heads.of(0, 0), part * 50, 50);
    };
    bool merges = false;
    for (const std::int64_t part : {2, 0, 1}) {
      attention_of_head(q, rows(parts.k(), part), rows(parts.v(), part), kScale, {window, 0, part * 50}, merges, out,
                        parts.lse.data());
      merges = true;
    }
    EXPECT_LT(relative_error(parts.out, whole.out), kFloatError);
    EXPECT_LT(relative_error(parts.lse, whole.lse), kFloatError);
    std::fill(parts.dquery.begin(), parts.dquery.end(), 0.0F);
    std::fill(parts.dkey.begin(), parts.dkey.end(), 0.0F);
    for (const std::int64_t part : {1, 2, 0}) {
      add_attention_gradient_of_head({q, rows(parts.k(), part), rows(parts.v(), part), out, parts.lse.data()},
                                     parts.of_values(parts.dout).of(0, 0), kScale, {window, 0, part * 50},
                                     parts.dq().of(0, 0), rows(parts.dk(), part), rows(parts.dv(), part));
    }
    EXPECT_LT(relative_error(parts.dquery, whole.dquery), kFloatError);
    EXPECT_LT(relative_error(parts.dkey, whole.dkey), kFloatError);
  }
}

}  // namespace
}  // namespace orrery::kernels
