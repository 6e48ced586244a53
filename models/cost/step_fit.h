#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "models/base/json_value.h"
#include "models/cost/nccl/model.h"

namespace orrery {

struct Profile;

// The parts of a step whose times a few measured steps of one stack can correct: matrix products, attention, kernels
// bound by memory, the host's work, transfers inside nodes, transfers between nodes.
enum class FitPart : std::uint8_t { products, attention, memory, host, inside, between };
inline constexpr std::size_t kFitParts = 6;
std::string_view name_of(FitPart part);
constexpr std::size_t index_of(FitPart part) { return static_cast<std::size_t>(part); }

// StepFit is the result of comparing a few measured steps of one software stack on one cluster with predictions (orrery
// calibrate --from-steps). It corrects built-in constants, and never replaces times of kernels or transfers that a
// profile has measured one by one.
struct StepFit {
  struct Number {
    double factor = 1;  // factor on the time of the part
    // standard deviations of the factor's natural logarithm: with the measured steps, and without them
    double spread = 0, prior_spread = 0;
  };
  std::array<Number, kFitParts> numbers;
  std::int64_t steps = 0;    // number of the measured steps; 0: there is no fit
  std::string software;      // name of the stack whose constants the factors correct
  double low = 1, high = 1;  // the interval in which 80 % of measured step times are expected, over the prediction

  double factor(FitPart part) const { return numbers[index_of(part)].factor; }
};

// Divides the rates of a profile's formulas by the factors of kernels. The factors of the host and of transfers apply
// where these are timed (sim/cost/costs.cpp).
void apply(const StepFit& fit, Profile& profile);

// Returns a transfer with the fit's factor on its time. between: whether it is one between nodes.
NcclChoice corrected(const StepFit& fit, const NcclChoice& choice, bool between);

// These functions convert between a StepFit and the key "steps" of a profile's JSON file: {"count", "software", "low",
// "high", "numbers": {"products": {"factor", "spread", "prior_spread"}, ...}}. step_fit_of() throws Error with file and
// key if a value is missing or wrong.
nlohmann::ordered_json json_of(const StepFit& fit);
StepFit step_fit_of(const JsonValue& entry);

}  // namespace orrery
