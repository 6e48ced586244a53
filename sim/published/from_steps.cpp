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

// FittedPart is a part of a step as it is known before any step of the stack is measured. spread: standard deviation of
// the logarithm of the part's factor from stack to stack, estimated by judgement, not yet over published stacks.
// shifts: logarithms of factors at which a step is simulated to see how its time depends on the part. The host's work
// differs most: a call of the framework takes from 0 (compiled, CUDA graphs) to 120 us in the known stacks.
struct FittedPart {
  FitPart part;
  double spread;
  std::vector<double> shifts;
};
const std::vector<FittedPart>& parts() {
  static const std::vector<FittedPart> all = {
      {FitPart::products, .10, {-.3, .3}}, {FitPart::attention, .15, {-.4, .4}},
      {FitPart::memory, .15, {-.4, .4}},   {FitPart::host, .6, {-1.4, -.5, .5, 1.0}},
      {FitPart::inside, .25, {-.7, .7}},   {FitPart::between, .3, {-.7, .7}}};
  return all;
}
// The standard deviation of the logarithm of a factor that all parts share: clocks, or work that is in no part.
constexpr double kSharedSpread = .08;

// The standard deviation of ln(measured / predicted) that the factors leave unexplained, as it is expected before any
// step is measured, and the number of measured steps that this expectation counts for.
constexpr double kStepNoise = .04, kNoiseSteps = 6;

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

StepCovariance prior_covariance() {
  StepCovariance c{};
  for (std::size_t i = 0; i < kFitParts; ++i) {
    c[i].fill(kSharedSpread * kSharedSpread);
    c[i][i] += parts()[i].spread * parts()[i].spread;
  }
  return c;
}

StepsFit fit_steps(const std::vector<const StepResponse*>& steps, const std::vector<double>& measured_s) {
  StepsFit fit{.covariance = prior_covariance(), .noise = kStepNoise, .steps = static_cast<std::int64_t>(steps.size())};
  const Matrix prior = matrix_of(fit.covariance).inverse();
  for (int iteration = 0; iteration < kIterations && !steps.empty(); ++iteration) {
    Matrix a = prior;
    Vector b = Vector::Zero();
    const Vector x = vector_of(fit.shifts);
    const double weight = 1 / (fit.noise * fit.noise);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Vector s = vector_of(steps[i]->slopes(fit.shifts));
      a += weight * s * s.transpose();
      b += weight * s * (std::log(measured_s[i]) - steps[i]->at(fit.shifts) + s.dot(x));
    }
    const Matrix covariance = a.inverse();
    // Half of the way to the solution, so that shifts do not jump between two straight parts of a curve.
    const Vector next = (.5 * x + .5 * (covariance * b)).cwiseMax(-kFarthestTold).cwiseMin(kFarthestTold);
    std::copy(next.data(), next.data() + kFitParts, fit.shifts.begin());
    fit.covariance = covariance_of(covariance);
    const double seen = squares(steps, measured_s, fit.shifts), n = static_cast<double>(steps.size());
    fit.noise = std::sqrt((kNoiseSteps * kStepNoise * kStepNoise + seen) / (kNoiseSteps + n));
  }
  return fit;
}

double variance_of(const StepResponse& step, const StepsFit& fit) {
  const Vector s = vector_of(step.slopes(fit.shifts));
  return s.dot(matrix_of(fit.covariance) * s) + fit.noise * fit.noise;
}

StepFit step_fit(const std::vector<StepResponse>& steps, const std::vector<double>& measured_s, std::string software,
                 std::pair<double, double> widest) {
  std::vector<const StepResponse*> all;
  for (const StepResponse& step : steps) all.push_back(&step);
  const StepsFit fit = fit_steps(all, measured_s);
  StepFit result;
  result.steps = fit.steps;
  result.software = std::move(software);
  const StepCovariance before = prior_covariance();
  for (std::size_t i = 0; i < kFitParts; ++i)
    result.numbers[i] = {std::exp(fit.shifts[i]), std::sqrt(fit.covariance[i][i]), std::sqrt(before[i][i])};
  double variance = 0;
  for (std::size_t left_out = 0; left_out < all.size(); ++left_out) {
    std::vector<const StepResponse*> others = all;
    std::vector<double> times = measured_s;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(left_out));
    times.erase(times.begin() + static_cast<std::ptrdiff_t>(left_out));
    StepsFit without = fit_steps(others, times);
    without.noise = std::max(without.noise, fit.noise);
    variance += variance_of(*all[left_out], without) / static_cast<double>(all.size());
  }
  constexpr double kEightyPercent = 1.2816;  // standard deviations on each side of the mean that hold 80 %
  const double half = std::exp(kEightyPercent * std::sqrt(variance));
  result.low = std::max(widest.first, 1 / half);
  result.high = std::min(widest.second, half);
  return result;
}

}  // namespace orrery
