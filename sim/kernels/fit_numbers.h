#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "models/cost/kernel_law_keys.h"
#include "sim/kernels/simplex.h"

namespace orrery {

inline constexpr int kCallsOfNumber = 60;  // evaluations for each number that is fitted at once
inline constexpr double kFirstStep = 0.2;  // of the first simplex, in logarithms
inline constexpr double kFarOff = 0.4;     // a row that is farther off, |ln(predicted / measured)|, does not count more

// A number of a law as the simplex sees it: its logarithm, that of its odds (between 0 and 1), or itself in units.
enum class NumberScale { logarithm, odds, units };
inline constexpr double kLeastNumber = 1e-3;  // where a logarithm begins
inline double seen(double number, NumberScale scale, double unit) {
  if (scale == NumberScale::logarithm) return std::log(std::max(number, kLeastNumber) / unit);
  const double share = std::clamp(number, kLeastNumber, 1 - kLeastNumber);
  return scale == NumberScale::odds ? std::log(share / (1 - share)) : number / unit;
}
inline double number_of(double seen, NumberScale scale, double unit) {
  if (scale == NumberScale::logarithm) return unit * std::exp(std::clamp(seen, -15.0, 15.0));
  return scale == NumberScale::odds ? 1 / (1 + std::exp(-seen)) : seen * unit;
}

// A number that is fitted, and how the simplex sees it; it stays in the range that a file of laws allows.
template <class Numbers>
struct FreeNumber {
  LawNumber<Numbers> key;
  NumberScale scale = NumberScale::logarithm;
  double unit = 1;
  double seen_in(const Numbers& numbers) const { return seen(numbers.*key.number, scale, unit); }
  double at(double seen) const { return std::clamp(number_of(seen, scale, unit), key.least, key.most); }
};

// Shares of a whole are seen by their odds, and other numbers by their logarithm.
template <class Keys>
auto free_numbers(const Keys& keys) {
  using Key = std::remove_cvref_t<decltype(keys[0])>;
  std::vector<FreeNumber<typename Key::Of>> numbers;
  for (const Key& key : keys) numbers.push_back({key, key.most == 1 ? NumberScale::odds : NumberScale::logarithm});
  return numbers;
}

// Changes numbers so that f of them becomes least. A number that is 0, or that f does not depend on, stays as it is.
template <class Numbers, class F>
void minimise(Numbers& numbers, const std::vector<FreeNumber<Numbers>>& free, const F& f) {
  std::vector<FreeNumber<Numbers>> kept;
  const double before = f(numbers);
  for (const FreeNumber<Numbers>& n : free) {
    Numbers changed = numbers;
    changed.*n.key.number /= 2;
    if (numbers.*n.key.number != 0 && f(changed) != before) kept.push_back(n);
  }
  std::vector<double> start;
  for (const FreeNumber<Numbers>& n : kept) start.push_back(n.seen_in(numbers));
  const auto with = [&](const std::vector<double>& values) {
    Numbers changed = numbers;
    for (std::size_t i = 0; i < kept.size(); ++i) changed.*kept[i].key.number = kept[i].at(values[i]);
    return changed;
  };
  const auto value = [&](const std::vector<double>& values) { return f(with(values)); };
  numbers = with(least_by_simplex(value, start, kFirstStep, kCallsOfNumber * static_cast<int>(start.size())));
}

// How far off a row's time is, |ln(predicted / measured)|, at most kFarOff: also where numbers give no finite time.
inline double off(double predicted, double measured) {
  const double error = std::abs(std::log(predicted / measured));
  return error < kFarOff ? error : kFarOff;
}

}  // namespace orrery
