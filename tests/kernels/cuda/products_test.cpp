#include "kernels/cuda/products.h"

#include <numbers>

#include "kernels/reference/gemm.h"
#include "tests/kernels/cuda/device.h"

namespace orrery::kernels::cuda {
namespace {

using ProductsTest = OnDevice;

// fp32 sums of up to a few thousand terms: cuBLASLt's order is its own.
double product_error(Type type) { return 4 * kFloatError + rounding_of(type); }

struct Shape {
  std::int64_t rows, in, out;
};
const Shape kProducts[] = {{8, 8, 8}, {40, 64, 24}, {257, 512, 136}, {128, 1024, 768}};

TEST_F(ProductsTest, LinearLayersMatchTheirReference) {
  Products products;
  for (const Type type : kTypes) {
    for (const auto& [rows, in, out] : kProducts) {
      SCOPED_TRACE(name_of(type) + " " + std::to_string(in));
      Operand x(type, rows, in, 8, 1), w(type, out, in, 0, 2), bias(type, 1, out, 0, 3), y(type, rows, out, 0, 4);
      Operand dx(type, rows, in, 0, 5), dw(Type::fp32, out, in, 0, 6), flat(type, out, in, 0, 7);
      products.linear(x.view(), w.view(), bias.array(), y.view(), nullptr);
      reference::linear<double>(x.reference(), w.reference(), bias.doubles.data(), y.reference());
      EXPECT_LT(y.error(), product_error(type));
      products.linear(x.view(), w.view(), {}, y.view(), nullptr);
      reference::linear<double>(x.reference(), w.reference(), nullptr, y.reference());
      EXPECT_LT(y.error(), product_error(type));
      y.doubles = y.read();
      products.linear_input_gradient(y.view(), w.view(), dx.view(), nullptr);
      reference::linear_input_gradient<double>(y.reference(), w.reference(), dx.reference());
      EXPECT_LT(dx.error(), product_error(type));
      for (const bool accumulate : {false, true}) {
        products.linear_weight_gradient(y.view(), x.view(), accumulate, dw.view(), nullptr);
        reference::linear_weight_gradient<double>(y.reference(), x.reference(), accumulate, dw.reference());
        EXPECT_LT(dw.error(), product_error(Type::fp32));
        dw.doubles = dw.read();
      }
      products.linear_weight_gradient(y.view(), x.view(), false, flat.view(), nullptr);
      reference::linear_weight_gradient<double>(y.reference(), x.reference(), false, flat.reference());
      EXPECT_LT(flat.error(), product_error(type));
    }
  }
}

TEST_F(ProductsTest, EpiloguesDoTheirPart) {
  Products products;
  const std::int64_t rows = 64, in = 128, out = 96;
  const Type type = Type::bf16;
  Operand x(type, rows, in, 0, 1), w(type, out, in, 0, 2), bias(type, 1, out, 0, 3), y(type, rows, out, 0, 4);
  Operand aux(type, rows, out, 0, 5), dw(Type::fp32, out, in, 0, 6), dbias(Type::fp32, 1, out, 0, 7);
  products.multiply({.transposed = {.b = true},
                     .a = x.view(),
                     .b = w.view(),
                     .c = y.view(),
                     .epilogue = Epilogue::gelu_aux_bias,
                     .bias = bias.array(),
                     .aux = aux.view()},
                    nullptr);
  reference::linear<double>(x.reference(), w.reference(), bias.doubles.data(), aux.reference());
  EXPECT_LT(aux.error(), product_error(type));
  const double root = std::sqrt(2 / std::numbers::pi);
  for (std::size_t i = 0; i < y.doubles.size(); ++i) {
    const double z = aux.doubles[i];
    y.doubles[i] = z / 2 * (1 + std::tanh(root * (z + 0.044715 * z * z * z)));  // GeLU's tanh approximation
  }
  EXPECT_LT(y.error(), product_error(type));
  products.multiply({.transposed = {.a = true},
                     .a = y.view(),
                     .b = x.view(),
                     .c = dw.view(),
                     .epilogue = Epilogue::bgrad,
                     .bias = dbias.array()},
                    nullptr);
  y.doubles = y.read();
  reference::linear_weight_gradient<double>(y.reference(), x.reference(), false, dw.reference());
  EXPECT_LT(dw.error(), product_error(Type::fp32));
  for (std::int64_t c = 0; c < out; ++c) {
    dbias.doubles[c] = 0;
    for (std::int64_t r = 0; r < rows; ++r) dbias.doubles[c] += y.reference().row(r)[c];
  }
  EXPECT_LT(dbias.error(), product_error(Type::fp32));
}

TEST_F(ProductsTest, AttentionsProductsMatchTheirReference) {
  Products products;
  const std::int64_t batch = 2, tokens = 24, heads = 4, kv_heads = 2, d = 16, width = (heads + 2 * kv_heads) * d;
  for (const Type type : kTypes) {
    Operand qkv(type, batch * tokens, width, 0, 1), dqkv(type, batch * tokens, width, 0, 2);
    Operand y(type, batch * tokens, heads * d, 0, 3), scores(type, batch * heads * tokens, tokens, 0, 4);
    const auto q = [&](const auto& m) { return heads_of(m, batch, 0, heads, d); };
    const auto k = [&](const auto& m) { return heads_of(m, batch, heads, kv_heads, d); };
    products.head_scores(q(qkv.view()), k(qkv.view()), 0.25F, scores.array(), nullptr);
    reference::head_scores<double>(q(qkv.reference()), k(qkv.reference()), 0.25, scores.doubles.data());
    EXPECT_LT(scores.error(), product_error(type)) << name_of(type);
    scores.doubles = scores.read();
    products.head_values(scores.array(), k(qkv.view()), 0.5F, q(y.view()), nullptr);
    reference::head_values<double>(scores.doubles.data(), k(qkv.reference()), 0.5, q(y.reference()));
    EXPECT_LT(y.error(), product_error(type)) << name_of(type);
    products.head_key_gradient(scores.array(), q(qkv.view()), 0.5F, k(dqkv.view()), nullptr);
    reference::head_key_gradient<double>(scores.doubles.data(), q(qkv.reference()), 0.5, k(dqkv.reference()));
    EXPECT_LT(dqkv.error(), product_error(type) + rounding_of(type)) << name_of(type);  // rounded after each head
  }
}

TEST_F(ProductsTest, SaysWhichAlgorithmItChose) {
  Products products;
  const Operand x(Type::bf16, 1024, 1024, 0, 1), w(Type::bf16, 1024, 1024, 0, 2), y(Type::bf16, 1024, 1024, 0, 3);
  const Algorithm a = products.algorithm({.transposed = {.b = true}, .a = x.view(), .b = w.view(), .c = y.view()});
  EXPECT_GT(a.waves, 0);
  EXPECT_GE(a.split_k, 0);
  EXPECT_GT(a.tile, 0);
}

TEST_F(ProductsTest, RefusesShapesThatDoNotFit) {
  Products products;
  const Operand x(Type::bf16, 8, 16, 0, 1), y(Type::bf16, 8, 8, 0, 2);
  EXPECT_THROW(products.multiply({.a = x.view(), .b = x.view(), .c = y.view()}, nullptr), std::invalid_argument);
}

}  // namespace
}  // namespace orrery::kernels::cuda
