#include "sim/published/step_priors.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <Eigen/Dense>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/error.h"

namespace orrery {
namespace {

nlohmann::ordered_json file() { return nlohmann::ordered_json::parse(data_file("step_priors.json")); }

std::vector<std::string> keys() {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < kFitParts; ++i) all.emplace_back(name_of(static_cast<FitPart>(i)));
  all.insert(all.end(), {"shared", "noise", "noise_spread", "own_stack"});
  return all;
}

// One figure (value, prior, spread) of every number, in the order of keys().
std::vector<double> figures(const char* figure) {
  const nlohmann::ordered_json whole = file();
  std::vector<double> all;
  for (const std::string& key : keys()) {
    const auto& list = whole.at("numbers");
    const auto found = std::find_if(list.begin(), list.end(), [&](const auto& n) { return n.at("key") == key; });
    if (found == list.end()) throw Error(fmt::format("step_priors.json: has no '{}'", key));
    all.push_back(found->at(figure).template get<double>());
  }
  return all;
}

StepPriors priors_of(const char* figure) {
  StepPriors priors;
  const std::vector<double> values = figures(figure);
  const std::vector<double*> numbers = numbers_in(priors);
  for (std::size_t i = 0; i < numbers.size(); ++i) *numbers[i] = values[i];
  return priors;
}

}  // namespace

std::vector<double*> numbers_in(StepPriors& p) {
  std::vector<double*> all;
  for (double& spread : p.spreads) all.push_back(&spread);
  all.insert(all.end(), {&p.shared, &p.noise, &p.noise_spread, &p.own_stack});
  return all;
}

const StepPriors& built_in_priors() {
  static const StepPriors priors = priors_of("value");
  return priors;
}

const StepPriors& judged_priors() {
  static const StepPriors priors = priors_of("prior");
  return priors;
}

const std::vector<double>& spreads_of_priors() {
  static const std::vector<double> spreads = figures("spread");
  return spreads;
}

std::string step_priors_json(const StepPriors& estimated, const std::vector<std::string>& sources) {
  nlohmann::ordered_json whole = file();
  whole["estimated_on"] = sources;
  StepPriors copy = estimated;
  const std::vector<double*> numbers = numbers_in(copy);
  const std::vector<std::string> names = keys();
  for (auto& number : whole.at("numbers")) {
    const auto at = std::find(names.begin(), names.end(), number.at("key").get<std::string>()) - names.begin();
    number["value"] = std::round(*numbers[static_cast<std::size_t>(at)] * 1000) / 1000;
  }
  return whole.dump(1) + '\n';
}

StepCovariance covariance_of(const StepPriors& priors) {
  StepCovariance c{};
  for (std::size_t i = 0; i < kFitParts; ++i) {
    c[i].fill(priors.shared * priors.shared);
    c[i][i] += priors.spreads[i] * priors.spreads[i];
  }
  return c;
}

std::array<double, kNoiseLevels.size()> noise_weights(const StepPriors& priors) {
  std::array<double, kNoiseLevels.size()> weights{};
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double off = std::log(kNoiseLevels[i] / priors.noise) / priors.noise_spread;
    sum += weights[i] = std::exp(-off * off / 2);
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

double ln_sum(const std::vector<double>& logarithms) {
  const double most = *std::max_element(logarithms.begin(), logarithms.end());
  double sum = 0;
  for (const double l : logarithms) sum += std::exp(l - most);
  return most + std::log(sum);
}

// The residuals are normal with covariance S C S' + noise^2: with the eigenvectors of S C S' they are independent.
double ln_evidence(const std::vector<StepShifts>& slopes, const std::vector<double>& residuals,
                   const StepPriors& priors) {
  const auto n = static_cast<Eigen::Index>(slopes.size());
  Eigen::MatrixXd s(n, static_cast<Eigen::Index>(kFitParts));
  Eigen::VectorXd r(n), spreads(static_cast<Eigen::Index>(kFitParts));
  for (Eigen::Index i = 0; i < n; ++i) {
    r(i) = residuals[static_cast<std::size_t>(i)];
    for (Eigen::Index j = 0; j < s.cols(); ++j)
      s(i, j) = slopes[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
  }
  for (Eigen::Index j = 0; j < s.cols(); ++j) spreads(j) = priors.spreads[static_cast<std::size_t>(j)];
  const Eigen::VectorXd shared = s.rowwise().sum() * priors.shared;
  const Eigen::MatrixXd own = s * spreads.asDiagonal();
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solved(own * own.transpose() + shared * shared.transpose());
  const Eigen::ArrayXd along = (solved.eigenvectors().transpose() * r).array().square();
  const auto weights = noise_weights(priors);
  std::vector<double> levels;
  for (std::size_t i = 0; i < kNoiseLevels.size(); ++i) {
    const Eigen::ArrayXd variance = solved.eigenvalues().array().max(0) + kNoiseLevels[i] * kNoiseLevels[i];
    levels.push_back(std::log(weights[i]) - (along / variance + variance.log()).sum() / 2);
  }
  return ln_sum(levels);
}

}  // namespace orrery
