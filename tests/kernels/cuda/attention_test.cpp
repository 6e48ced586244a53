#include "kernels/cuda/attention.h"

#include "kernels/reference/attention.h"
#include "tests/kernels/cuda/device.h"

namespace orrery::kernels::cuda {
namespace {

struct AttentionShape {
  std::int64_t batch, query, key, heads, kv_heads, head_dim;
  CausalMask mask = {};
};

// Every depth; less than a tile, several and odd numbers of rows; grouped queries; a window; a rank's part of a
// sequence; queries that see no key; keys that no query sees.
const AttentionShape kAttentions[] = {{1, 1, 1, 1, 1, 64},
                                      {2, 17, 17, 4, 2, 64},
                                      {1, 300, 300, 1, 1, 64},
                                      {1, 200, 200, 1, 1, 96, {.window = 40}},
                                      {1, 130, 130, 1, 1, 80},
                                      {1, 260, 260, 1, 1, 128},
                                      {1, 129, 257, 1, 1, 128, {.query_offset = 128}},
                                      {1, 150, 290, 2, 1, 128, {.window = 33, .query_offset = 140}},
                                      {1, 90, 90, 2, 1, 128, {.query_offset = 10, .key_offset = 50}},
                                      {1, 100, 100, 1, 1, 256},
                                      {1, 70, 70, 2, 1, 40},
                                      {1, 127, 127, 3, 1, 64},  // an odd number of rows of all heads
                                      {3, 21, 21, 3, 1, 128}};

// The kernels of fp32 have no tiles: a warp takes a row. A fourth of the rows takes a sixteenth of the time.
AttentionShape shape_for(Type type, AttentionShape s) {
  if (type != Type::fp32) return s;
  const auto quarter = [](std::int64_t rows) { return (rows + 3) / 4; };
  s.query = quarter(s.query);
  s.key = quarter(s.key);
  s.mask = {quarter(s.mask.window), quarter(s.mask.query_offset), quarter(s.mask.key_offset)};
  return s;
}

constexpr float kAttentionScale = 0.25F;

// All operands of attention. q, and k and v, lie in packed buffers.
struct AttentionCase {
  AttentionCase(Type type, const AttentionShape& s)
      : shape(s),
        width((s.heads + 2 * s.kv_heads) * s.head_dim),
        flat(s.heads * s.head_dim),
        query(type, s.batch * s.query, width, 0, 1),
        key(type, s.batch * s.key, width, 0, 2),
        dout(type, s.batch * s.query, flat, 0, 3),
        out(type, s.batch * s.query, flat, 8, 4),
        dquery(type, s.batch * s.query, width, 0, 5),
        dkey(type, s.batch * s.key, width, 0, 6),
        lse(s.batch * s.heads * s.query * 4) {}

  template <class View>
  auto q(const View& m) const {
    return heads_of(m, shape.batch, 0, shape.heads, shape.head_dim);
  }
  template <class View>
  auto k(const View& m) const {
    return heads_of(m, shape.batch, shape.heads, shape.kv_heads, shape.head_dim);
  }
  template <class View>
  auto v(const View& m) const {
    return heads_of(m, shape.batch, shape.heads + shape.kv_heads, shape.kv_heads, shape.head_dim);
  }
  AttentionSaved saved() const {
    return {q(query.view()), k(key.view()), v(key.view()), q(out.view()), lse.as<float>()};
  }

  void run() {
    attention(q(query.view()), k(key.view()), v(key.view()), kAttentionScale, shape.mask, q(out.view()),
              lse.as<float>(), nullptr);
    const Memory workspace(attention_gradient_workspace(q(query.view()), k(key.view())));
    attention_gradient(saved(), q(dout.view()), kAttentionScale, shape.mask, q(dquery.view()), k(dkey.view()),
                       v(dkey.view()), workspace.workspace(), nullptr);
  }
  void run_reference() {
    reference::attention<double>(q(query.reference()), k(key.reference()), v(key.reference()), kAttentionScale,
                                 shape.mask, q(out.reference()));
    reference::attention_gradient<double>(q(query.reference()), k(key.reference()), v(key.reference()),
                                          q(dout.reference()), kAttentionScale, shape.mask, q(dquery.reference()),
                                          k(dkey.reference()), v(dkey.reference()));
  }

  AttentionShape shape;
  std::int64_t width, flat;
  Operand query, key, dout, out, dquery, dkey;
  Memory lse;
};

using Attention = OnDevice;

// Checks lse against the CPU's kernel, which computes in fp32 from the same stored values.
void expect_log_sum_exp(AttentionCase& c) {
  const AttentionShape& shape = c.shape;
  const auto narrow = [](const std::vector<double>& x) { return std::vector<float>(x.begin(), x.end()); };
  std::vector<float> query = narrow(c.query.doubles), key = narrow(c.key.doubles);
  std::vector<float> out(shape.batch * shape.query * c.flat), lse(shape.batch * shape.heads * shape.query);
  const auto q = kernels::matrix(query.data(), shape.batch * shape.query, c.width);
  const auto k = kernels::matrix(key.data(), shape.batch * shape.key, c.width);
  kernels::attention(c.q(q), c.k(k), c.v(k), kAttentionScale, shape.mask,
                     c.q(kernels::matrix(out.data(), shape.batch * shape.query, c.flat)), lse.data());
  const std::vector<float> got = c.lse.read<float>();
  for (std::size_t i = 0; i < lse.size(); ++i) {
    if (std::isinf(lse[i]))
      EXPECT_EQ(got[i], lse[i]);
    else
      EXPECT_NEAR(got[i], lse[i], 1e-5) << "row " << i;
  }
}

// Tolerance: rounding of the probabilities and the result; for gradients also of the saved output, through the dot
// products of rows, and of the scores' gradients. Each is at most one rounding of the storage type.
TEST_F(Attention, MatchesItsReference) {
  for (const Type type : kTypes) {
    for (const AttentionShape& shape : kAttentions) {
      SCOPED_TRACE(name_of(type) + " " + std::to_string(&shape - kAttentions));
      AttentionCase c(type, shape_for(type, shape));
      c.run();
      expect_log_sum_exp(c);
      c.run_reference();
      const double rounding = rounding_of(type);
      EXPECT_LT(c.out.error(), 10 * kFloatError + 2 * rounding);
      EXPECT_LT(c.dquery.error(), 10 * kFloatError + 4 * rounding);
      EXPECT_LT(c.dkey.error(), 10 * kFloatError + 4 * rounding);
    }
  }
}

TEST_F(Attention, StaysFiniteForLargeScores) {
  for (const Type type : kTypes) {
    AttentionCase c(type, {1, 200, 200, 1, 1, 64});
    attention(c.q(c.query.view()), c.k(c.key.view()), c.v(c.key.view()), 1000, {}, c.q(c.out.view()), c.lse.as<float>(),
              nullptr);
    for (const double x : c.out.read()) EXPECT_LE(std::abs(x), 1.01);
  }
}

// A shape with so many key tiles that the query heads of a group run in one block; in the shapes above they run in
// separate blocks. Most tiles are seen by no query.
TEST_F(Attention, HeadsOfAGroupRunInOneBlock) {
  AttentionCase c(Type::bf16, {1, 3, 34000, 2, 1, 64, {.query_offset = 100}});
  c.run();
  c.run_reference();
  EXPECT_LT(c.dquery.error(), 10 * kFloatError + 4 * rounding_of(Type::bf16));
  EXPECT_LT(c.dkey.error(), 10 * kFloatError + 4 * rounding_of(Type::bf16));
}

TEST_F(Attention, RefusesWhatItCannotRead) {
  AttentionCase c(Type::bf16, {1, 8, 8, 1, 1, 12});
  EXPECT_THROW(c.run(), std::invalid_argument);
  EXPECT_THROW(attention_gradient(c.saved(), c.q(c.dout.view()), kAttentionScale, {}, c.q(c.dquery.view()),
                                  c.k(c.dkey.view()), c.v(c.dkey.view()), {}, nullptr),
               std::invalid_argument);
}

}  // namespace
}  // namespace orrery::kernels::cuda
