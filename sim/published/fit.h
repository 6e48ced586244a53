#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/cost/profile.h"
#include "models/spec/software.h"
#include "sim/published/predict.h"

namespace orrery {

// One fitted number of models/data/fitted.json: its key in a kernel profile or in software profiles, its built-in
// value, and the value that it would have without any measured step (`prior`, with `spread`, the standard deviation of
// its logarithm). like: the profile whose number with the same key this number resembles, "" = none. If there is one,
// the prior is `like_part` times that number and changes with it during the fit.
struct FittedNumber {
  std::vector<std::string> holders;  // profiles that have the number: "profile ampere", "software nanotron"
  std::string key;                   // key of the number in these profiles: "gemm.efficiency", "call_us"
  double value = 0, prior = 0, spread = 0;
  std::string like = "";
  double like_part = 1;
};
std::vector<FittedNumber> fitted_numbers();

// The value of a profile's number by its key: "gemm.efficiency" is the efficiency of the best tile, "attention.cudnn"
// the forward rate of that kernel for the largest head dimension. Throws Error for an unknown key.
double number_of(const Profile& profile, std::string_view key);

// Multiplies all values of a profile that belong to a key by `factor`, such as the efficiencies of all tiles and the
// rates of all head dimensions.
void scale(Profile& profile, std::string_view key, double factor);

// The errors of predictions for the measured steps (rows) of one publication (a paper or data set), by constants that
// were fitted without these steps.
struct LeftOut {
  std::string source;
  std::size_t rows = 0;  // number of measured steps that were predicted
  // Mean |error|. in_sample: with the built-in constants; left_out: with constants fitted without the publication;
  // halves: with constants fitted without the half of the publication that contains the step.
  double in_sample = 0, left_out = 0, halves = 0;
  double left_out_bias = 0;
  std::vector<FittedNumber> numbers;  // numbers with the values fitted without the publication
};

struct Refit {
  // numbers with the values fitted on a sample of measured steps from all publications
  std::vector<FittedNumber> numbers;
  std::vector<LeftOut> sources;
  std::size_t rows = 0;  // number of measured steps in that sample
};

// A function that calls `work` for 0 .. n-1, in any order and on several threads.
using ForEach = std::function<void(std::size_t n, const std::function<void(std::size_t)>& work)>;

// Fits the numbers of models/data/fitted.json again on a sample of the measured steps (rows), which is the same for the
// same rows: least squares of ln(predicted / measured), with large residuals cut (Huber) and each number kept near its
// prior by its spread. All steps of a publication share an offset, which stands for differences between clusters. The
// fit works with slopes at the built-in values, so that it costs a few predictions per step. It is repeated without
// each source in turn, whose steps are then predicted with the result.
Refit refit(const std::vector<PublishedRow>& rows, const ForEach& for_each);

std::string refit_text(const Refit& refit);
std::string refit_json(const Refit& refit);

}  // namespace orrery
