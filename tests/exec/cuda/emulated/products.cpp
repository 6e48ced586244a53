// Products of kernels/cuda/products.h on the host: what is stored in 16 bits is widened, multiplied by the CPU's
// products, and rounded back.
#include "kernels/cuda/products.h"

#include <vector>

#include "kernels/common/float16.h"

namespace orrery::kernels::cuda {
namespace {

float load(const void* data, Type type, std::int64_t i) {
  return type == Type::fp32 ? static_cast<const float*>(data)[i] : to_float(static_cast<const Bf16*>(data)[i]);
}

void store(void* data, Type type, std::int64_t i, float value) {
  if (type == Type::fp32)
    static_cast<float*>(data)[i] = value;
  else
    static_cast<Bf16*>(data)[i] = to_bf16(value);
}

// Elements 0 .. n of device memory as floats; a result is written back when the object is destroyed.
class Floats {
 public:
  Floats(const void* data, Type type, std::int64_t n) : values_(static_cast<std::size_t>(n)) {
    for (std::int64_t i = 0; i < n; ++i) values_[static_cast<std::size_t>(i)] = load(data, type, i);
  }
  float* data() { return values_.data(); }
  void store_to(void* to, Type type) const {
    for (std::size_t i = 0; i < values_.size(); ++i) store(to, type, static_cast<std::int64_t>(i), values_[i]);
  }

 private:
  std::vector<float> values_;
};

// Elements from the first to the last of a strided view; the gaps between rows stay as they are.
std::int64_t span_of(const ConstMatrix& m) { return m.rows == 0 ? 0 : (m.rows - 1) * m.stride + m.columns; }
std::int64_t span_of(const ConstHeads& h) {
  return h.batch * h.rows == 0 ? 0 : (h.batch * h.rows - 1) * h.stride + h.heads * h.head_dim;
}

kernels::Matrix<float> view(Floats& f, const ConstMatrix& m) { return {f.data(), m.rows, m.columns, m.stride}; }
kernels::Heads<float> view(Floats& f, const ConstHeads& h) {
  return {f.data(), h.batch, h.rows, h.heads, h.head_dim, h.stride};
}

}  // namespace

struct Products::State {};

Products::Products(bool, std::int64_t, int) {}
Products::~Products() = default;

void Products::linear(ConstMatrix x, ConstMatrix weight, ConstArray bias, Matrix y, cudaStream_t) {
  Floats a(x.data, x.type, span_of(x)), w(weight.data, weight.type, span_of(weight)), c(y.data, y.type, span_of(y));
  std::vector<float> b;
  for (std::int64_t i = 0; bias.data != nullptr && i < y.columns; ++i) b.push_back(load(bias.data, bias.type, i));
  kernels::linear(view(a, x), view(w, weight), b.empty() ? nullptr : b.data(), view(c, y));
  c.store_to(y.data, y.type);
}

// Carries out one product without an epilogue, on the host.
void Products::multiply(const Product& p, cudaStream_t) {
  Floats a(p.a.data, p.a.type, span_of(p.a)), b(p.b.data, p.b.type, span_of(p.b)), c(p.c.data, p.c.type, span_of(p.c));
  kernels::multiply(p.transposed, p.alpha, view(a, p.a), view(b, p.b), p.beta, view(c, p.c));
  c.store_to(p.c.data, p.c.type);
}

void Products::linear_input_gradient(ConstMatrix dy, ConstMatrix weight, Matrix dx, cudaStream_t) {
  Floats a(dy.data, dy.type, span_of(dy)), w(weight.data, weight.type, span_of(weight));
  Floats c(dx.data, dx.type, span_of(dx));
  kernels::linear_input_gradient(view(a, dy), view(w, weight), view(c, dx));
  c.store_to(dx.data, dx.type);
}

void Products::linear_weight_gradient(ConstMatrix dy, ConstMatrix x, bool accumulate, Matrix dweight, cudaStream_t) {
  Floats a(dy.data, dy.type, span_of(dy)), b(x.data, x.type, span_of(x));
  Floats c(dweight.data, dweight.type, span_of(dweight));
  kernels::linear_weight_gradient(view(a, dy), view(b, x), accumulate, view(c, dweight));
  c.store_to(dweight.data, dweight.type);
}

void Products::head_scores(ConstHeads a, ConstHeads b, float scale, Array weights, cudaStream_t) {
  Floats x(a.data, a.type, span_of(a)), y(b.data, b.type, span_of(b));
  Floats w(weights.data, weights.type, a.batch * a.heads * a.rows * b.rows);
  kernels::head_scores(view(x, a), view(y, b), scale, w.data());
  w.store_to(weights.data, weights.type);
}

void Products::head_values(ConstArray weights, ConstHeads b, float scale, Heads y, cudaStream_t) {
  Floats w(weights.data, weights.type, y.batch * y.heads * y.rows * b.rows), x(b.data, b.type, span_of(b));
  Floats out(y.data, y.type, span_of(y));
  kernels::head_values(w.data(), view(x, b), scale, view(out, y));
  out.store_to(y.data, y.type);
}

void Products::head_key_gradient(ConstArray weights, ConstHeads a, float scale, Heads g, cudaStream_t) {
  Floats w(weights.data, weights.type, a.batch * a.heads * a.rows * g.rows), x(a.data, a.type, span_of(a));
  Floats out(g.data, g.type, span_of(g));
  kernels::head_key_gradient(w.data(), view(x, a), scale, view(out, g));
  out.store_to(g.data, g.type);
}

}  // namespace orrery::kernels::cuda
