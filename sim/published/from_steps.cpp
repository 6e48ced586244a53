#include "sim/published/from_steps.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <Eigen/Dense>

#include "sim/predict/long_steps.h"

namespace orrery {
namespace {

using Vector = Eigen::Matrix<double, kFitParts, 1>;
using Matrix = Eigen::Matrix<double, kFitParts, kFitParts>;

// FittedPart is a part of a step, and the logarithms of factors on its time at which a step is simulated to see how its
// time depends on the part. The host's work differs most: a call of the framework takes from 0 (compiled, CUDA graphs)
// to 112 us in the known stacks.
struct FittedPart {
  FitPart part;
  std::vector<double> shifts;
};
const std::vector<FittedPart>& parts() {
  static const std::vector<FittedPart> all = {{FitPart::products, {-.3, .3}}, {FitPart::attention, {-.4, .4}},
                                              {FitPart::memory, {-.4, .4}},   {FitPart::host, {-1.4, -.5, .5, 1.0}},
                                              {FitPart::inside, {-.7, .7}},   {FitPart::between, {-.7, .7}}};
  return all;
}

constexpr int kIterations = 12;
constexpr double kFarthestTold = 1.5;  // a factor goes no farther than e^1.5 from 1

Vector vector_of(const StepShifts& shifts) { return Vector(shifts.data()); }

Matrix matrix_of(const StepCovariance& covariance) {
  Matrix m;
  for (std::size_t i = 0; i < kFitParts; ++i) {
    for (std::size_t j = 0; j < kFitParts; ++j)
      m(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = covariance[i][j];
  }
  return m;
}

StepCovariance covariance_of(const Matrix& m) {
  StepCovariance c{};
  for (std::size_t i = 0; i < kFitParts; ++i) {
    for (std::size_t j = 0; j < kFitParts; ++j) c[i][j] = m(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j));
  }
  return c;
}

// The segment of a curve that holds x: the index of its second point.
std::size_t segment_of(const std::vector<std::pair<double, double>>& curve, double x) {
  std::size_t i = 1;
  while (i + 1 < curve.size() && x > curve[i].first) ++i;
  return i;
}

double slope_of(const std::vector<std::pair<double, double>>& curve, double x) {
  if (curve.size() < 2) return 0;
  const std::size_t i = segment_of(curve, x);
  return (curve[i].second - curve[i - 1].second) / (curve[i].first - curve[i - 1].first);
}

double value_of(const std::vector<std::pair<double, double>>& curve, double x) {
  if (curve.size() < 2) return 0;
  const std::size_t i = segment_of(curve, x);
  return curve[i].second + slope_of(curve, x) * (x - curve[i].first);
}

Profile shifted(const Profile& built_in, FitPart part, double shift) {
  Profile p = built_in;
  p.steps.steps = 1;
  p.steps.numbers[index_of(part)].factor = std::exp(shift);
  apply(p.steps, p);
  return p;
}

// The squares of the residuals at the fit's shifts, summed.
double squares(const std::vector<const StepResponse*>& steps, const std::vector<double>& measured,
               const StepShifts& x) {
  double sum = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double r = std::log(measured[i]) - steps[i]->at(x);
    sum += r * r;
  }
  return sum;
}

// The most likely shifts for one level of noise, their covariance, and the logarithm of the measured steps' probability
// density (Laplace's approximation, up to a constant).
struct AtLevel {
  Vector shifts = Vector::Zero();
  Matrix covariance;
  double ln_evidence = 0;
};

AtLevel fit_at(const std::vector<const StepResponse*>& steps, const std::vector<double>& measured_s,
               const Matrix& prior, double noise) {
  AtLevel fit{.covariance = prior};
  const Matrix strict = prior.inverse();
  StepShifts at{};
  for (int iteration = 0; iteration < kIterations && !steps.empty(); ++iteration) {
    Matrix a = strict;
    Vector b = Vector::Zero();
    const double weight = 1 / (noise * noise);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Vector s = vector_of(steps[i]->slopes(at));
      a += weight * s * s.transpose();
      b += weight * s * (std::log(measured_s[i]) - steps[i]->at(at) + s.dot(fit.shifts));
    }
    fit.covariance = a.inverse();
    // Half of the way to the solution, so that shifts do not jump between two straight parts of a curve.
    fit.shifts = (.5 * fit.shifts + .5 * (fit.covariance * b)).cwiseMax(-kFarthestTold).cwiseMin(kFarthestTold).eval();
    std::copy(fit.shifts.data(), fit.shifts.data() + kFitParts, at.begin());
  }
  const double n = static_cast<double>(steps.size());
  fit.ln_evidence =
      -(squares(steps, measured_s, at) / (noise * noise) + 2 * n * std::log(noise) +
        fit.shifts.dot(strict * fit.shifts) + std::log(prior.determinant() / fit.covariance.determinant())) /
      2;
  return fit;
}

}  // namespace

double StepResponse::at(const StepShifts& shifts) const {
  double ln = built_in;
  for (std::size_t i = 0; i < kFitParts; ++i) ln += value_of(curves[i], shifts[i]);
  return ln;
}

StepShifts StepResponse::slopes(const StepShifts& shifts) const {
  StepShifts result{};
  for (std::size_t i = 0; i < kFitParts; ++i) result[i] = slope_of(curves[i], shifts[i]);
  return result;
}

StepResponse response_of(const Spec& spec, const Profile& profile) {
  StepResponse r;
  const auto ln_seconds = [&](const Profile& p) { return std::log(predict_report(spec, p).step_time_s); };
  r.built_in = ln_seconds(profile);
  for (const FittedPart& part : parts()) {
    std::vector<std::pair<double, double>>& curve = r.curves[index_of(part.part)];
    curve.emplace_back(0, 0);
    for (const double shift : part.shifts)
      curve.emplace_back(shift, ln_seconds(shifted(profile, part.part, shift)) - r.built_in);
    std::sort(curve.begin(), curve.end());
  }
  return r;
}

StepsFit fit_steps(const std::vector<const StepResponse*>& steps, const std::vector<double>& measured_s,
                   const StepPriors& priors) {
  const Matrix prior = matrix_of(covariance_of(priors));
  const auto weights = noise_weights(priors);
  std::vector<AtLevel> levels;
  std::vector<double> ln_weights;
  for (std::size_t i = 0; i < kNoiseLevels.size(); ++i) {
    levels.push_back(fit_at(steps, measured_s, prior, kNoiseLevels[i]));
    ln_weights.push_back(levels.back().ln_evidence + std::log(weights[i]));
  }
  const double all = ln_sum(ln_weights);
  Vector mean = Vector::Zero();
  for (std::size_t i = 0; i < levels.size(); ++i) mean += std::exp(ln_weights[i] - all) * levels[i].shifts;
  Matrix covariance = Matrix::Zero();
  double squared = 0;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const double weight = std::exp(ln_weights[i] - all);
    const Vector off = levels[i].shifts - mean;
    covariance += weight * (levels[i].covariance + off * off.transpose());
    squared += weight * kNoiseLevels[i] * kNoiseLevels[i];
  }
  StepsFit fit{.covariance = covariance_of(covariance),
               .noise = std::sqrt(squared),
               .steps = static_cast<std::int64_t>(steps.size())};
  std::copy(mean.data(), mean.data() + kFitParts, fit.shifts.begin());
  return fit;
}

double variance_of(const StepResponse& step, const StepsFit& fit) {
  const Vector s = vector_of(step.slopes(fit.shifts));
  return s.dot(matrix_of(fit.covariance) * s) + fit.noise * fit.noise;
}

StepFit step_fit(const std::vector<StepResponse>& steps, const std::vector<double>& measured_s, std::string software,
                 const StepPriors& priors) {
  std::vector<const StepResponse*> all;
  for (const StepResponse& step : steps) all.push_back(&step);
  const StepsFit fit = fit_steps(all, measured_s, priors);
  StepFit result;
  result.steps = fit.steps;
  result.software = std::move(software);
  const StepCovariance before = covariance_of(priors);
  for (std::size_t i = 0; i < kFitParts; ++i)
    result.numbers[i] = {std::exp(fit.shifts[i]), std::sqrt(fit.covariance[i][i]), std::sqrt(before[i][i])};
  double variance = 0;
  for (std::size_t left_out = 0; left_out < all.size(); ++left_out) {
    std::vector<const StepResponse*> others = all;
    std::vector<double> times = measured_s;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(left_out));
    times.erase(times.begin() + static_cast<std::ptrdiff_t>(left_out));
    StepsFit without = fit_steps(others, times, priors);
    without.noise = std::max(without.noise, fit.noise);
    variance += variance_of(*all[left_out], without) / static_cast<double>(all.size());
  }
  constexpr double kEightyPercent = 1.2816;  // standard deviations on each side of the mean that hold 80 %
  const double half = std::exp(kEightyPercent * std::sqrt(variance));
  result.low = 1 / half;
  result.high = half;
  return result;
}

StepsFit fit_of(const StepFit& kept) {
  StepsFit fit = fit_steps({}, {});
  if (kept.steps == 0) return fit;
  fit.steps = kept.steps;
  for (std::size_t i = 0; i < kFitParts; ++i) {
    fit.shifts[i] = std::log(kept.numbers[i].factor);
    fit.covariance[i].fill(0);
    fit.covariance[i][i] = kept.numbers[i].spread * kept.numbers[i].spread;
  }
  return fit;
}

}  // namespace orrery
