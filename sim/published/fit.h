#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/cost/profile.h"
#include "models/spec/software.h"
#include "sim/published/predict.h"

namespace orrery {

// One fitted number of models/data/fitted.json: a key of a kernel profile or of software profiles, the built-in value,
// and the value that one would take without any measured step (`prior`, with the `spread` of its logarithm). like: the
// profile whose number of the same key this one resembles, "" = none: then the prior is `like_part` of that number and
// moves with the fit.
struct FittedNumber {
  std::vector<std::string> holders;  // profiles that have the number: "profile ampere", "software nanotron"
  std::string key;                   // "gemm.efficiency", "call_us"
  double value = 0, prior = 0, spread = 0;
  std::string like = "";
  double like_part = 1;
};
std::vector<FittedNumber> fitted_numbers();

// A number of a profile by its key: "gemm.efficiency" is the efficiency of the best tile, "attention.cudnn" the forward
// rate of that kernel for the widest heads. Throws Error for another key.
double number_of(const Profile& profile, std::string_view key);

// Multiplies a profile's numbers of a key by `factor`; numbers for other tiles and widths of the key change in
// proportion.
void scale(Profile& profile, std::string_view key, double factor);

// The errors of predictions for the measured steps (rows) of one source by constants that were fitted without them.
struct LeftOut {
  std::string source;
  std::size_t rows = 0;  // rows that were predicted
  // Mean |error|. in_sample: with the built-in constants; left_out: fitted without the source; halves: fitted without
  // every second row of the source, both ways.
  double in_sample = 0, left_out = 0, halves = 0;
  double left_out_bias = 0;
  std::vector<FittedNumber> numbers;  // value: fitted without the source
};

struct Refit {
  std::vector<FittedNumber> numbers;  // value: fitted on a sample of rows from all sources
  std::vector<LeftOut> sources;
  std::size_t rows = 0;  // rows of that sample
};

// Runs a function for 0 .. n-1, in any order and on several threads.
using ForEach = std::function<void(std::size_t n, const std::function<void(std::size_t)>& work)>;

// Fits the listed numbers again on a sample of the measured steps (rows), the same sample for the same rows: least
// squares of ln(predicted / measured), large residuals cut (Huber), each number held near its prior by its spread, and
// the offset that all rows of a source share ascribed to its cluster as far as clusters differ. The fit works with
// slopes at the built-in values, so that it costs a few predictions per row. It is repeated without each source in
// turn, whose rows are then predicted with the result.
Refit refit(const std::vector<PublishedRow>& rows, const ForEach& for_each);

std::string refit_text(const Refit& refit);
std::string refit_json(const Refit& refit);

}  // namespace orrery
