#include "kernels/cpu/recurrence.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace orrery::kernels {
namespace {

constexpr double kLengthEpsilon = 1e-6;  // added to squared lengths, as flash-linear-attention's l2norm does
// The backward pass keeps the recurrence's state at every kChunk-th token, and recomputes the states in between.
constexpr std::int64_t kChunk = 64;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return x > 30 ? x : std::log1p(std::exp(x)); }
double silu_slope(double x) { return sigmoid(x) * (1 + x * (1 - sigmoid(x))); }

// Returns the sum that a convolution computes for one token and column, before SiLU is applied.
double convolved(Matrix<const float> x, ConvolutionWeights w, std::int64_t token, std::int64_t column) {
  double sum = w.bias == nullptr ? 0 : w.bias[column];
  for (std::int64_t j = std::max<std::int64_t>(0, w.taps - 1 - token); j < w.taps; ++j)
    sum += static_cast<double>(w.weight[column * w.taps + j]) * x.row(token - w.taps + 1 + j)[column];
  return sum;
}

// Computes one head of a recurrence over the tokens of a sample.
class Head {
 public:
  Head(const RecurrenceShape& s, Matrix<const float> x, RecurrenceGates gates, RecurrenceWeights w, std::int64_t head)
      : s_(s), x_(x), gates_(gates), w_(w), head_(head), group_(head / (s.heads / s.groups)) {}

  // The query, key and value of one token in this head, and the numbers computed from the token's gates.
  struct Token {
    std::vector<double> q, k, v;
    double scale_q = 1, scale_k = 1;      // factors that scaled q and k to length one
    double sum = 0, decay = 1, step = 1;  // sum: the token's decay gate plus the head's bias
  };

  Token token(std::int64_t t) const {
    Token now;
    now.q = unit(t, group_ * s_.key_dim, now.scale_q);
    now.k = unit(t, (s_.groups + group_) * s_.key_dim, now.scale_k);
    if (s_.unit_keys) {
      for (double& q : now.q) q /= std::sqrt(static_cast<double>(s_.key_dim));
    }
    const float* v = x_.row(t) + 2 * s_.groups * s_.key_dim + head_ * s_.value_dim;
    now.v.assign(v, v + s_.value_dim);
    now.sum = static_cast<double>(gates_.decay.row(t)[head_]) + w_.bias[head_];
    now.decay = std::exp(-std::exp(static_cast<double>(w_.decay[head_])) * softplus(now.sum));
    now.step = gates_.step.data == nullptr ? softplus(now.sum) : sigmoid(gates_.step.row(t)[head_]);
    return now;
  }

  // Returns the vector u (value_dim) of which step * k u^T is added to the state at a token with key k: the token's
  // value or, with the delta rule (`corrects`), the value less what the decayed state predicts for that key.
  std::vector<double> correction(const Token& now, const std::vector<double>& decayed) const {
    std::vector<double> u = now.v;
    for (std::int64_t i = 0; s_.corrects && i < s_.key_dim; ++i) {
      for (std::int64_t j = 0; j < s_.value_dim; ++j) u[j] -= decayed[i * s_.value_dim + j] * now.k[i];
    }
    return u;
  }

  void advance(const Token& now, std::vector<double>& state) const {
    for (double& x : state) x *= now.decay;
    const std::vector<double> u = correction(now, state);
    for (std::int64_t i = 0; i < s_.key_dim; ++i) {
      for (std::int64_t j = 0; j < s_.value_dim; ++j) state[i * s_.value_dim + j] += now.k[i] * now.step * u[j];
    }
  }

  void read(const Token& now, const std::vector<double>& state, float* y) const {
    for (std::int64_t j = 0; j < s_.value_dim; ++j) {
      double sum = w_.skip == nullptr ? 0 : w_.skip[head_] * now.v[j];
      for (std::int64_t i = 0; i < s_.key_dim; ++i) sum += state[i * s_.value_dim + j] * now.q[i];
      y[j] = static_cast<float>(sum);
    }
  }

  // kept: the state before the first token and after the last one; null: zero before, and forgotten
  void run(Matrix<float> y, float* kept) const {
    std::vector<double> state(static_cast<std::size_t>(s_.key_dim * s_.value_dim));
    if (kept != nullptr) std::copy_n(kept, state.size(), state.data());
    for (std::int64_t t = 0; t < x_.rows; ++t) {
      const Token now = token(t);
      advance(now, state);
      read(now, state, y.row(t) + head_ * s_.value_dim);
    }
    if (kept != nullptr)
      std::transform(state.begin(), state.end(), kept, [](double x) { return static_cast<float>(x); });
  }

  void run_back(Matrix<const float> dy, const RecurrenceGradients& d) const {
    const std::size_t size = static_cast<std::size_t>(s_.key_dim * s_.value_dim);
    const std::vector<std::vector<double>> starts = chunk_starts();
    std::vector<double> dstate(size);
    for (auto chunk = static_cast<std::int64_t>(starts.size()) - 1; chunk >= 0; --chunk) {
      const std::int64_t first = chunk * kChunk, end = std::min(first + kChunk, x_.rows);
      std::vector<std::vector<double>> before = {starts[chunk]};  // the state before each token of the chunk
      for (std::int64_t t = first; t + 1 < end; ++t) {
        before.push_back(before.back());
        advance(token(t), before.back());
      }
      for (std::int64_t t = end - 1; t >= first; --t)
        back(t, before[t - first], dy.row(t) + head_ * s_.value_dim, dstate, d);
    }
  }

 private:
  std::vector<std::vector<double>> chunk_starts() const {
    std::vector<std::vector<double>> starts;
    std::vector<double> state(static_cast<std::size_t>(s_.key_dim * s_.value_dim));
    for (std::int64_t t = 0; t < x_.rows; ++t) {
      if (t % kChunk == 0) starts.push_back(state);
      advance(token(t), state);
    }
    return starts;
  }

  std::vector<double> unit(std::int64_t t, std::int64_t first, double& scale) const {
    const float* from = x_.row(t) + first;
    std::vector<double> y(from, from + s_.key_dim);
    if (!s_.unit_keys) return y;
    double squares = kLengthEpsilon;
    for (const double x : y) squares += x * x;
    scale = 1 / std::sqrt(squares);
    for (double& x : y) x *= scale;
    return y;
  }

  // Adds the gradient of a query or key to the gradient of the input (`to`). With unit_keys, the input was multiplied
  // by `scale` to give the vector `unit` of length one; dunit is the gradient of that vector.
  void add_unit_gradient(const std::vector<double>& unit, double scale, std::vector<double> dunit, float* to) const {
    double along = 0;
    for (std::int64_t i = 0; s_.unit_keys && i < s_.key_dim; ++i) along += unit[i] * dunit[i];
    for (std::int64_t i = 0; i < s_.key_dim; ++i) {
      if (s_.unit_keys) dunit[i] = scale * (dunit[i] - unit[i] * along);
      to[i] += static_cast<float>(dunit[i]);
    }
  }

  // Computes the backward pass of one token. before: the state before the token. dstate: on entry, the gradient of the
  // state after the token; on return, the gradient of the state before it.
  void back(std::int64_t t, const std::vector<double>& before, const float* dy, std::vector<double>& dstate,
            const RecurrenceGradients& d) const {
    const Token now = token(t);
    const std::int64_t n = s_.key_dim, m = s_.value_dim;
    std::vector<double> decayed = before;
    for (double& x : decayed) x *= now.decay;
    const std::vector<double> u = correction(now, decayed);
    std::vector<double> dq(n), dk(n), du(m), dv(m);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < m; ++j) {
        const double after = decayed[i * m + j] + now.k[i] * now.step * u[j];
        double& ds = dstate[i * m + j];
        dq[i] += after * dy[j];
        ds += now.q[i] * dy[j];
        dk[i] += ds * now.step * u[j];
        du[j] += ds * now.k[i];
      }
    }
    double dstep = 0, ddecay = 0, dskip = 0;
    for (std::int64_t j = 0; j < m; ++j) {
      dstep += du[j] * u[j];
      du[j] *= now.step;
      dv[j] = du[j] + (w_.skip == nullptr ? 0 : w_.skip[head_] * dy[j]);
      dskip += now.v[j] * dy[j];
    }
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < m; ++j) {
        double& ds = dstate[i * m + j];
        if (s_.corrects) {
          dk[i] -= decayed[i * m + j] * du[j];
          ds -= now.k[i] * du[j];
        }
        ddecay += ds * before[i * m + j];
        ds *= now.decay;
      }
    }
    if (w_.skip != nullptr) d.skip[head_] += static_cast<float>(dskip);
    add_gate_gradients(t, now, dstep, ddecay, d);
    add_input_gradients(t, now, std::move(dq), std::move(dk), dv, d);
  }

  void add_gate_gradients(std::int64_t t, const Token& now, double dstep, double ddecay,
                          const RecurrenceGradients& d) const {
    const double rate = std::exp(static_cast<double>(w_.decay[head_]));
    double dsoftplus = -rate * now.decay * ddecay;
    d.decay[head_] += static_cast<float>(-rate * softplus(now.sum) * now.decay * ddecay);
    if (gates_.step.data == nullptr)
      dsoftplus += dstep;
    else
      d.step_gate.row(t)[head_] = static_cast<float>(dstep * now.step * (1 - now.step));
    const double dsum = dsoftplus * sigmoid(now.sum);
    d.decay_gate.row(t)[head_] = static_cast<float>(dsum);
    d.bias[head_] += static_cast<float>(dsum);
  }

  void add_input_gradients(std::int64_t t, const Token& now, std::vector<double> dq, std::vector<double> dk,
                           const std::vector<double>& dv, const RecurrenceGradients& d) const {
    const double shrunk = s_.unit_keys ? std::sqrt(static_cast<double>(s_.key_dim)) : 1;
    std::vector<double> unit_q = now.q;
    for (double& q : unit_q) q *= shrunk;
    for (double& q : dq) q /= shrunk;
    float* row = d.x.row(t);
    add_unit_gradient(unit_q, now.scale_q, std::move(dq), row + group_ * s_.key_dim);
    add_unit_gradient(now.k, now.scale_k, std::move(dk), row + (s_.groups + group_) * s_.key_dim);
    float* values = row + 2 * s_.groups * s_.key_dim + head_ * s_.value_dim;
    for (std::int64_t j = 0; j < s_.value_dim; ++j) values[j] = static_cast<float>(dv[j]);
  }

  const RecurrenceShape& s_;
  Matrix<const float> x_;
  RecurrenceGates gates_;
  RecurrenceWeights w_;
  std::int64_t head_, group_;
};

}  // namespace

void convolve(Matrix<const float> x, ConvolutionWeights w, Matrix<float> y) {
  for (std::int64_t t = 0; t < x.rows; ++t) {
    for (std::int64_t column = 0; column < x.columns; ++column) {
      const double sum = convolved(x, w, t, column);
      y.row(t)[column] = static_cast<float>(sum * sigmoid(sum));
    }
  }
}

void convolve_gradient(Matrix<const float> x, ConvolutionWeights w, Matrix<const float> dy, Matrix<float> dx,
                       float* dweight, float* dbias) {
  std::vector<double> dsum(static_cast<std::size_t>(x.rows));
  for (std::int64_t column = 0; column < x.columns; ++column) {
    double of_bias = 0;
    for (std::int64_t t = 0; t < x.rows; ++t) {
      dsum[t] = dy.row(t)[column] * silu_slope(convolved(x, w, t, column));
      of_bias += dsum[t];
    }
    if (dbias != nullptr) dbias[column] += static_cast<float>(of_bias);
    for (std::int64_t t = 0; t < x.rows; ++t) {
      double sum = 0;
      for (std::int64_t back = 0; back < w.taps && t + back < x.rows; ++back)
        sum += dsum[t + back] * w.weight[column * w.taps + w.taps - 1 - back];
      dx.row(t)[column] = static_cast<float>(sum);
    }
    for (std::int64_t back = 0; back < w.taps; ++back) {
      double sum = 0;
      for (std::int64_t t = back; t < x.rows; ++t) sum += dsum[t] * x.row(t - back)[column];
      dweight[column * w.taps + w.taps - 1 - back] += static_cast<float>(sum);
    }
  }
}

void scan(const RecurrenceShape& s, Matrix<const float> x, RecurrenceGates gates, RecurrenceWeights w, Matrix<float> y,
          float* states) {
  for (std::int64_t head = 0; head < s.heads; ++head)
    Head(s, x, gates, w, head).run(y, states == nullptr ? nullptr : states + head * s.key_dim * s.value_dim);
}

void scan_gradient(const RecurrenceShape& s, Matrix<const float> x, RecurrenceGates gates, RecurrenceWeights w,
                   Matrix<const float> dy, const RecurrenceGradients& d) {
  for (std::int64_t t = 0; t < x.rows; ++t) std::fill_n(d.x.row(t), 2 * s.groups * s.key_dim, 0.0F);
  for (std::int64_t head = 0; head < s.heads; ++head) Head(s, x, gates, w, head).run_back(dy, d);
}

void gated_norm(const GatedNormShape& s, Matrix<const float> x, Matrix<const float> gate, const float* weight,
                Matrix<float> y, float* reciprocal) {
  const std::int64_t runs = x.columns / s.width;
  for (std::int64_t r = 0; r < x.rows * runs; ++r) {
    const std::int64_t row = r / runs, first = r % runs * s.width;
    double squares = 0;
    for (std::int64_t i = first; i < first + s.width; ++i) {
      const double z = gate.row(row)[i], value = x.row(row)[i] * (s.gates_first ? z * sigmoid(z) : 1);
      squares += value * value;
    }
    const double scale = 1 / std::sqrt(squares / static_cast<double>(s.width) + s.epsilon);
    reciprocal[r] = static_cast<float>(scale);
    for (std::int64_t i = first; i < first + s.width; ++i) {
      const double z = gate.row(row)[i];
      y.row(row)[i] = static_cast<float>(weight[s.shared ? i - first : i] * scale * x.row(row)[i] * z * sigmoid(z));
    }
  }
}

void gated_norm_gradient(const GatedNormShape& s, Matrix<const float> x, Matrix<const float> gate, const float* weight,
                         const float* reciprocal, Matrix<const float> dy, Matrix<float> dx, Matrix<float> dgate,
                         float* dweight) {
  const std::int64_t runs = x.columns / s.width;
  for (std::int64_t r = 0; r < x.rows * runs; ++r) {
    const std::int64_t row = r / runs, first = r % runs * s.width;
    const double scale = reciprocal[r];
    double along = 0;  // mean over the group's columns of the normed values times their gradients
    for (std::int64_t i = first; i < first + s.width; ++i) {
      const double z = gate.row(row)[i];
      // The gate multiplies either the normed value (gates_first) or its gradient, so the product of the two is the
      // same.
      along += dy.row(row)[i] * weight[s.shared ? i - first : i] * z * sigmoid(z) * x.row(row)[i] * scale;
    }
    along /= static_cast<double>(s.width);
    for (std::int64_t i = first; i < first + s.width; ++i) {
      const double z = gate.row(row)[i], open = z * sigmoid(z), value = x.row(row)[i], g = dy.row(row)[i];
      const double w = weight[s.shared ? i - first : i];
      const double normed = value * scale * (s.gates_first ? open : 1);
      const double dnormed = g * w * (s.gates_first ? 1 : open);
      const double dvalue = scale * (dnormed - normed * along);
      dx.row(row)[i] = static_cast<float>(dvalue * (s.gates_first ? open : 1));
      dgate.row(row)[i] = static_cast<float>((s.gates_first ? dvalue * value : g * w * normed) * silu_slope(z));
      dweight[s.shared ? i - first : i] += static_cast<float>(g * normed * (s.gates_first ? 1 : open));
    }
  }
}

}  // namespace orrery::kernels
