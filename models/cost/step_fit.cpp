#include "models/cost/step_fit.h"

#include <nlohmann/json.hpp>

#include "models/base/sensible.h"
#include "models/cost/profile.h"

namespace orrery {
namespace {

constexpr std::string_view kParts[kFitParts] = {"products", "attention", "memory", "host", "inside", "between"};
// A measured step that needs a factor farther from 1 was measured with something else than its spec says.
constexpr double kLeastFactor = 0.01, kMostFactor = 100;
constexpr std::int64_t kMostSteps = 1'000'000;

}  // namespace

std::string_view name_of(FitPart part) { return kParts[index_of(part)]; }

void apply(const StepFit& fit, Profile& p) {
  if (fit.steps == 0) return;
  for (Tile& tile : p.gemm.tiles) tile.efficiency /= fit.factor(FitPart::products);
  for (AttentionKernel& kernel : p.attention) {
    for (AttentionHead& head : kernel.heads) {
      head.forward_fraction /= fit.factor(FitPart::attention);
      head.backward_fraction /= fit.factor(FitPart::attention);
    }
  }
  p.memory.fraction /= fit.factor(FitPart::memory);
}

NcclChoice corrected(const StepFit& fit, const NcclChoice& choice, bool between) {
  const double factor = fit.factor(between ? FitPart::between : FitPart::inside);
  return factor == 1 || choice.seconds <= 0 ? choice : lasting(choice, choice.seconds * factor);
}

nlohmann::ordered_json json_of(const StepFit& fit) {
  nlohmann::ordered_json numbers;
  for (std::size_t i = 0; i < kFitParts; ++i) {
    const StepFit::Number& n = fit.numbers[i];
    numbers[std::string(kParts[i])] = {{"factor", n.factor}, {"spread", n.spread}, {"prior_spread", n.prior_spread}};
  }
  return {{"count", fit.steps}, {"software", fit.software}, {"low", fit.low}, {"high", fit.high}, {"numbers", numbers}};
}

StepFit step_fit_of(const JsonValue& entry) {
  StepFit fit;
  fit.steps = entry.at("count").whole(1, kMostSteps);
  fit.software = entry.text_or("software", "");
  fit.low = entry.at("low").number(kLeastFactor, 1);
  fit.high = entry.at("high").number(1, kMostFactor);
  const JsonValue numbers = entry.at("numbers");
  for (std::size_t i = 0; i < kFitParts; ++i) {
    const JsonValue number = numbers.at(kParts[i]);
    fit.numbers[i] = {number.at("factor").number(kLeastFactor, kMostFactor),
                      number.number_or("spread", 0, 0, sensible::kMostSpread),
                      number.number_or("prior_spread", 0, 0, sensible::kMostSpread)};
  }
  return fit;
}

}  // namespace orrery
