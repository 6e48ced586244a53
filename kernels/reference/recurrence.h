#pragma once

#include <cmath>
#include <vector>

#include "kernels/cpu/recurrence.h"

// Reference implementations, in double, of the functions of kernels/cpu/recurrence.h on one sample. They keep no state:
// every token adds up the contributions of the tokens before it, each multiplied by all decays since that token.
namespace orrery::kernels::reference {

inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// Computes a causal convolution over the tokens. x is (tokens, columns), weight (columns, taps), bias (columns) or
// empty.
inline std::vector<double> convolve(const std::vector<double>& x, const std::vector<double>& weight,
                                    const std::vector<double>& bias, std::int64_t columns) {
  const auto taps = static_cast<std::int64_t>(weight.size()) / columns;
  std::vector<double> y(x.size());
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(x.size()); ++i) {
    const std::int64_t column = i % columns, token = i / columns;
    double sum = bias.empty() ? 0 : bias[column];
    for (std::int64_t back = 0; back < taps && back <= token; ++back)
      sum += weight[column * taps + taps - 1 - back] * x[(token - back) * columns + column];
    y[i] = sum * logistic(sum);
  }
  return y;
}

// The inputs of a recurrence as row-major arrays: x (tokens, columns), the gates (tokens, heads), of which step_gate
// may be empty, and the weights (heads), of which skip may be empty.
struct RecurrenceInputs {
  std::vector<double> x, decay_gate, step_gate, decay, bias, skip;
};

inline std::vector<double> scan(const RecurrenceShape& s, const RecurrenceInputs& in) {
  const std::int64_t columns = 2 * s.groups * s.key_dim + s.heads * s.value_dim;
  const std::int64_t tokens = static_cast<std::int64_t>(in.x.size()) / columns;
  std::vector<double> y(static_cast<std::size_t>(tokens * s.heads * s.value_dim));
  for (std::int64_t head = 0; head < s.heads; ++head) {
    const std::int64_t group = head / (s.heads / s.groups);
    const auto part = [&](std::int64_t token, std::int64_t first, std::int64_t n, bool unit) {
      std::vector<double> v(in.x.begin() + token * columns + first, in.x.begin() + token * columns + first + n);
      double squares = 1e-6;
      for (const double a : v) squares += a * a;
      for (double& a : v) a /= unit ? std::sqrt(squares) : 1;
      return v;
    };
    const auto dot = [](const std::vector<double>& a, const std::vector<double>& b) {
      double sum = 0;
      for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
      return sum;
    };
    // for each token so far: its key k, and the vector u of the outer product k u^T that it added to the state
    std::vector<std::vector<double>> keys, added;
    std::vector<double> log_decay(1, 0);  // for each token so far: sum of the logarithms of all decays up to it
    for (std::int64_t t = 0; t < tokens; ++t) {
      const double plus = std::log1p(std::exp(in.decay_gate[t * s.heads + head] + in.bias[head]));
      log_decay.push_back(log_decay.back() - std::exp(in.decay[head]) * plus);
      const double step = in.step_gate.empty() ? plus : logistic(in.step_gate[t * s.heads + head]);
      const std::vector<double> q = part(t, group * s.key_dim, s.key_dim, s.unit_keys);
      const std::vector<double> v = part(t, 2 * s.groups * s.key_dim + head * s.value_dim, s.value_dim, false);
      keys.push_back(part(t, (s.groups + group) * s.key_dim, s.key_dim, s.unit_keys));
      std::vector<double> u = v;
      const auto since = [&](std::int64_t r) { return std::exp(log_decay[t + 1] - log_decay[r + 1]); };
      for (std::int64_t r = 0; s.corrects && r < t; ++r) {
        const double seen = since(r) * dot(keys[r], keys[t]);
        for (std::int64_t j = 0; j < s.value_dim; ++j) u[j] -= seen * added[r][j];
      }
      for (double& a : u) a *= step;
      added.push_back(u);
      for (std::int64_t j = 0; j < s.value_dim; ++j) {
        double sum = 0;
        for (std::int64_t r = 0; r <= t; ++r) sum += since(r) * dot(keys[r], q) * added[r][j];
        if (s.unit_keys) sum /= std::sqrt(static_cast<double>(s.key_dim));
        y[(t * s.heads + head) * s.value_dim + j] = sum + (in.skip.empty() ? 0 : in.skip[head] * v[j]);
      }
    }
  }
  return y;
}

// Computes RMS norm with a gate. The shape of x and gate is (rows, columns), that of weight (width) or (columns).
inline std::vector<double> gated_norm(const GatedNormShape& s, const std::vector<double>& x,
                                      const std::vector<double>& gate, const std::vector<double>& weight,
                                      std::int64_t columns) {
  std::vector<double> y(x.size());
  for (std::size_t first = 0; first < x.size(); first += static_cast<std::size_t>(s.width)) {
    double squares = 0;
    for (std::size_t i = first; i < first + static_cast<std::size_t>(s.width); ++i) {
      y[i] = x[i] * (s.gates_first ? gate[i] * logistic(gate[i]) : 1);
      squares += y[i] * y[i];
    }
    const double deviation = std::sqrt(squares / static_cast<double>(s.width) + static_cast<double>(s.epsilon));
    for (std::size_t i = first; i < first + static_cast<std::size_t>(s.width); ++i) {
      const std::size_t of = s.shared ? i - first : i % static_cast<std::size_t>(columns);
      y[i] *= weight[of] / deviation * (s.gates_first ? 1 : gate[i] * logistic(gate[i]));
    }
  }
  return y;
}

}  // namespace orrery::kernels::reference
