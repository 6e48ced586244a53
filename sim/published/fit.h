#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/cost/profile.h"
#include "models/spec/software.h"
#include "sim/published/predict.h"

namespace orrery {

// One number of models/data/fitted.json that is fitted to measured steps. prior: the value that it would have without
// any measured step; spread: the standard deviation of its logarithm around the prior; like: the profile whose number
// with the same key this number resembles ("": none). If there is one, the prior is `like_part` times that number and
// changes with it during the fit. parts: what part of the value a holder has that does not have all of it.
struct FittedNumber {
  std::vector<std::string> holders;  // profiles that have the constant: "profile ampere", "software nanotron"
  std::string key;                   // name of the constant in these profiles: "gemm.efficiency", "call_us"
  double value = 0, prior = 0, spread = 0;
  std::string like = "";
  double like_part = 1;
  std::map<std::string, double> parts = {};
};
std::vector<FittedNumber> fitted_numbers();

// The value of a number in a profile, by its key: "gemm.efficiency" is the efficiency of the best tile,
// "attention.fa1" the forward rate of that attention kernel for the largest head dimension. Throws Error for an
// unknown key.
double number_of(const Profile& profile, std::string_view key);

// Multiplies all values of a profile that belong to a key by `factor`, such as the efficiencies of all tiles.
void scale(Profile& profile, std::string_view key, double factor);

// A fit is repeated without one of these at a time: a publication; a release of a stack, in whichever publications (a
// step whose release is not known goes with its publication); all steps with one model (name_models).
enum class LeftOutBy : std::uint8_t { source, release, model };
LeftOutBy find_left_out(std::string_view name);  // "release"; throws Error for another name than those three

// How well the measured steps of one publication (a paper or data set), or of whatever else is left out, are predicted
// with constants that were fitted without these steps.
struct LeftOut {
  std::string source;    // name of the publication, release or model
  std::size_t rows = 0;  // number of measured steps that were predicted
  // Means of |predicted / measured - 1|. in_sample: with the built-in constants; left_out: with constants fitted
  // without all of it; halves: with constants fitted without the half of it that contains the step.
  double in_sample = 0, left_out = 0, halves = 0;
  double left_out_bias = 0;
  std::vector<FittedNumber> numbers;  // the constants as fitted without the publication
};

struct Refit {
  LeftOutBy by = LeftOutBy::source;
  // The constants as fitted to a sample of measured steps from all publications.
  std::vector<FittedNumber> numbers;
  std::vector<LeftOut> sources;
  std::size_t rows = 0;  // number of measured steps in the sample
  // For each measured step that was given, also those outside of the sample: measured over predicted time, with
  // constants that were fitted without what was left out with it. nullopt: doubtful, without a time, or not predicted.
  std::vector<std::optional<double>> ratios;
};

// A function that calls `work` for 0 to n - 1, in any order and on several threads.
using ForEach = std::function<void(std::size_t n, const std::function<void(std::size_t)>& work)>;

// Fits the numbers of models/data/fitted.json again to a sample of the measured steps (rows); the same rows give the
// same sample. The fit is least squares of ln(predicted / measured), in which large residuals count less (Huber) and
// each number is held near its prior, as strictly as its spread says. All steps of a publication share an offset, which
// stands for differences between clusters. The fit uses slopes at the built-in values, so that it needs only a few
// predictions per step. It is repeated without each publication (release, model) in turn, whose steps are then
// predicted with the result.
Refit refit(const std::vector<PublishedRow>& rows, const ForEach& for_each, LeftOutBy by = LeftOutBy::source);

// Errors of all steps, with constants that were fitted without what was left out with each: by publication ("all"
// last), of every step, and of those whose models have experts. cases[i] must be of the fit's row i.
struct LeftOutErrors {
  std::vector<ErrorSummary> steps, experts;
};
LeftOutErrors left_out_errors(const std::vector<PublishedCase>& cases, const Refit& refit);

std::string refit_text(const Refit& refit, const LeftOutErrors& errors);
std::string refit_json(const Refit& refit, const LeftOutErrors& errors);

}  // namespace orrery
