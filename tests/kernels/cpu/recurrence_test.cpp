#include "kernels/cpu/recurrence.h"

#include <gtest/gtest.h>

#include "kernels/reference/recurrence.h"
#include "tests/kernels/random.h"

namespace orrery::kernels {
namespace {

using Doubles = std::vector<double>;

// fp32 of a few hundred dependent steps, against double; an error in a formula is a thousand times as large.
constexpr double kScanError = 2e-5;

void expect_near(const std::vector<float>& found, const Doubles& expected, const char* what) {
  EXPECT_LT(relative_error(found, expected), kScanError) << what;
}

TEST(Recurrence, ConvolutionAndItsGradientMatchTheReference) {
  constexpr std::int64_t kScanTokens = 9, kScanColumns = 5;
  for (const std::int64_t taps : {1, 4, 12}) {
    for (const bool biased : {false, true}) {
      const std::vector<float> x = random_floats(kScanTokens * kScanColumns, 1),
                               dy = random_floats(kScanTokens * kScanColumns, 2);
      const std::vector<float> weight = random_floats(kScanColumns * taps, 3), bias = random_floats(kScanColumns, 4);
      const Doubles biases = biased ? wide(bias) : Doubles();
      std::vector<float> y(x.size()), dx(x.size()), dweight(weight.size()), dbias(bias.size());
      const ConvolutionWeights w = {weight.data(), biased ? bias.data() : nullptr, taps};
      convolve(matrix(x.data(), kScanTokens, kScanColumns), w, matrix(y.data(), kScanTokens, kScanColumns));
      convolve_gradient(matrix(x.data(), kScanTokens, kScanColumns), w, matrix(dy.data(), kScanTokens, kScanColumns),
                        matrix(dx.data(), kScanTokens, kScanColumns), dweight.data(), biased ? dbias.data() : nullptr);
      expect_near(y, reference::convolve(wide(x), wide(weight), biases, kScanColumns), "y");
      const auto by = [&](const std::vector<float>& at, const std::function<Doubles(const Doubles&)>& f) {
        return finite_differences(wide(at), wide(dy), f);
      };
      expect_near(dx,
                  by(x, [&](const Doubles& v) { return reference::convolve(v, wide(weight), biases, kScanColumns); }),
                  "dx");
      expect_near(dweight,
                  by(weight, [&](const Doubles& v) { return reference::convolve(wide(x), v, biases, kScanColumns); }),
                  "dweight");
      if (biased)
        expect_near(
            dbias,
            by(bias, [&](const Doubles& v) { return reference::convolve(wide(x), wide(weight), v, kScanColumns); }),
            "dbias");
    }
  }
}

// The rules and their gates: the delta rule with two gates a head, a state space with one and a skip, and mixtures.
struct ScanCase {
  RecurrenceShape shape;
  bool steps_apart, skips;
  std::int64_t tokens;
};

struct ScanData {
  explicit ScanData(const ScanCase& c)
      : rows(c.tokens),
        columns(2 * c.shape.groups * c.shape.key_dim + c.shape.heads * c.shape.value_dim),
        heads(c.shape.heads),
        x(random_floats(rows * columns, 1)),
        decay_gate(random_floats(rows * heads, 2)),
        step_gate(c.steps_apart ? random_floats(rows * heads, 3) : std::vector<float>()),
        decay(random_floats(heads, 4)),
        bias(random_floats(heads, 5)),
        skip(c.skips ? random_floats(heads, 6) : std::vector<float>()),
        dy(random_floats(rows * heads * c.shape.value_dim, 7)) {}

  RecurrenceGates gates() const {
    RecurrenceGates g = {matrix(decay_gate.data(), rows, heads), {}};
    if (!step_gate.empty()) g.step = matrix(step_gate.data(), rows, heads);
    return g;
  }
  RecurrenceWeights weights() const { return {decay.data(), bias.data(), skip.empty() ? nullptr : skip.data()}; }
  reference::RecurrenceInputs inputs() const {
    return {wide(x), wide(decay_gate), wide(step_gate), wide(decay), wide(bias), wide(skip)};
  }

  std::int64_t rows, columns, heads;
  std::vector<float> x, decay_gate, step_gate, decay, bias, skip, dy;
};

void expect_scan_matches(const ScanCase& c) {
  const ScanData d(c);
  std::vector<float> y(d.dy.size()), dx(d.x.size()), ddecay_gate(d.decay_gate.size()), dstep_gate(d.step_gate.size());
  std::vector<float> ddecay(d.decay.size()), dbias(d.bias.size()), dskip(d.skip.size());
  const auto rows = [&](const std::vector<float>& v) {
    return matrix(v.data(), d.rows, static_cast<std::int64_t>(v.size()) / d.rows);
  };
  const auto to = [&](std::vector<float>& v) {
    return matrix(v.data(), d.rows, static_cast<std::int64_t>(v.size()) / d.rows);
  };
  scan(c.shape, rows(d.x), d.gates(), d.weights(), to(y));
  scan_gradient(c.shape, rows(d.x), d.gates(), d.weights(), rows(d.dy),
                {to(dx), to(ddecay_gate), to(dstep_gate), ddecay.data(), dbias.data(), dskip.data()});
  expect_near(y, reference::scan(c.shape, d.inputs()), "y");
  const auto check = [&](const std::vector<float>& found, Doubles reference::RecurrenceInputs::*part,
                         const char* what) {
    if (found.empty()) return;
    const auto f = [&](const Doubles& v) {
      reference::RecurrenceInputs in = d.inputs();
      in.*part = v;
      return reference::scan(c.shape, in);
    };
    expect_near(found, finite_differences(d.inputs().*part, wide(d.dy), f), what);
  };
  check(dx, &reference::RecurrenceInputs::x, "dx");
  check(ddecay_gate, &reference::RecurrenceInputs::decay_gate, "gate of the decay");
  check(dstep_gate, &reference::RecurrenceInputs::step_gate, "gate of the step");
  check(ddecay, &reference::RecurrenceInputs::decay, "decay");
  check(dbias, &reference::RecurrenceInputs::bias, "bias");
  check(dskip, &reference::RecurrenceInputs::skip, "skip");
}

TEST(Recurrence, DeltaRuleAndItsGradientMatchTheReference) {
  expect_scan_matches(
      {{.heads = 4, .groups = 2, .key_dim = 3, .value_dim = 5, .corrects = true, .unit_keys = true}, true, false, 7});
  // More tokens than lie between the states that backward starts from.
  expect_scan_matches(
      {{.heads = 1, .groups = 1, .key_dim = 2, .value_dim = 2, .corrects = true, .unit_keys = true}, true, false, 70});
}

TEST(Recurrence, StateSpaceAndItsGradientMatchTheReference) {
  expect_scan_matches({{.heads = 4, .groups = 2, .key_dim = 3, .value_dim = 2}, false, true, 6});
  expect_scan_matches({{.heads = 2, .groups = 1, .key_dim = 2, .value_dim = 1}, false, true, 66});
}

// Runs of tokens that go on from the states of the run before have the results of all tokens together.
TEST(Recurrence, GoesOnFromTheStatesOfEarlierTokens) {
  const ScanCase c = {
      {.heads = 4, .groups = 2, .key_dim = 3, .value_dim = 5, .corrects = true, .unit_keys = true}, true, false, 9};
  const ScanData d(c);
  std::vector<float> whole(d.dy.size()), parts(d.dy.size()), states(4 * 3 * 5);
  const auto rows = [&](std::vector<float>& v) {
    return matrix(v.data(), d.rows, static_cast<std::int64_t>(v.size()) / d.rows);
  };
  const Matrix<const float> x = matrix(d.x.data(), d.rows, d.columns);
  scan(c.shape, x, d.gates(), d.weights(), rows(whole));
  std::int64_t first = 0;
  for (const std::int64_t count : {4, 1, 3, 1}) {
    const RecurrenceGates gates = {rows_of(d.gates().decay, first, count), rows_of(d.gates().step, first, count)};
    scan(c.shape, rows_of(x, first, count), gates, d.weights(), rows_of(rows(parts), first, count), states.data());
    first += count;
  }
  EXPECT_LT(relative_error(parts, wide(whole)), kScanError);
}

TEST(Recurrence, GatedNormAndItsGradientMatchTheReference) {
  constexpr std::int64_t kNormRows = 3, kScanColumns = 8;
  for (const bool first : {false, true}) {
    for (const bool shared : {false, true}) {
      const GatedNormShape s = {.width = 4, .gates_first = first, .shared = shared, .epsilon = 0x1p-17F};
      const std::vector<float> x = random_floats(kNormRows * kScanColumns, 1),
                               gate = random_floats(kNormRows * kScanColumns, 2);
      const std::vector<float> weight = random_floats(shared ? s.width : kScanColumns, 3),
                               dy = random_floats(kNormRows * kScanColumns, 4);
      std::vector<float> y(x.size()), dx(x.size()), dgate(x.size()), dweight(weight.size()), reciprocal(kNormRows * 2);
      const auto of = [](auto& v) { return matrix(v.data(), kNormRows, kScanColumns); };
      gated_norm(s, of(x), of(gate), weight.data(), of(y), reciprocal.data());
      gated_norm_gradient(s, of(x), of(gate), weight.data(), reciprocal.data(), of(dy), of(dx), of(dgate),
                          dweight.data());
      const auto f = [&](const Doubles& a, const Doubles& b, const Doubles& w) {
        return reference::gated_norm(s, a, b, w, kScanColumns);
      };
      expect_near(y, f(wide(x), wide(gate), wide(weight)), "y");
      expect_near(
          dx, finite_differences(wide(x), wide(dy), [&](const Doubles& v) { return f(v, wide(gate), wide(weight)); }),
          "dx");
      expect_near(
          dgate,
          finite_differences(wide(gate), wide(dy), [&](const Doubles& v) { return f(wide(x), v, wide(weight)); }),
          "dgate");
      expect_near(
          dweight,
          finite_differences(wide(weight), wide(dy), [&](const Doubles& v) { return f(wide(x), wide(gate), v); }),
          "dweight");
    }
  }
}

}  // namespace
}  // namespace orrery::kernels
