#include "sim/kernels/fit_laws.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "sim/kernels/law_rows.h"
#include "sim/kernels/simplex.h"

namespace orrery {
namespace {

constexpr std::size_t kFitRows = 1000;  // rows of a kind of GPU and precision that the fit uses
constexpr int kFitRounds = 3;           // rounds of the GPUs' numbers and the family's
constexpr int kCallsOfNumber = 60;      // evaluations for each number that is fitted at once
constexpr double kFirstStep = 0.2;      // of the first simplex, in logarithms
constexpr double kFarOff = 0.4;         // a row that is farther off, |ln(predicted / measured)|, does not count more

// A number of a law as the simplex sees it: its logarithm, that of its odds (between 0 and 1), or itself in units.
enum class NumberScale { logarithm, odds, units };
constexpr double kLeastNumber = 1e-3;  // where a logarithm begins
double seen(double number, NumberScale scale, double unit) {
  if (scale == NumberScale::logarithm) return std::log(std::max(number, kLeastNumber) / unit);
  const double share = std::clamp(number, kLeastNumber, 1 - kLeastNumber);
  return scale == NumberScale::odds ? std::log(share / (1 - share)) : number / unit;
}
double number_of(double seen, NumberScale scale, double unit) {
  if (scale == NumberScale::logarithm) return unit * std::exp(std::clamp(seen, -15.0, 15.0));
  return scale == NumberScale::odds ? 1 / (1 + std::exp(-seen)) : seen * unit;
}

template <class Numbers>
struct FreeNumber {
  double Numbers::*number;
  NumberScale scale = NumberScale::logarithm;
  double unit = 1;
};
const std::vector<FreeNumber<ProductLaw>> kProductNumbers = {
    {&ProductLaw::prologue_us}, {&ProductLaw::smoothing, NumberScale::odds},
    {&ProductLaw::intensity},   {&ProductLaw::overlap},
    {&ProductLaw::depth_us},    {&ProductLaw::split_us},
    {&ProductLaw::heat},        {&ProductLaw::cast_us},
    {&ProductLaw::cast_part}};
const std::vector<FreeNumber<AttentionLaw>> kAttentionNumbers = {
    {&AttentionLaw::key_block},     {&AttentionLaw::result_passes}, {&AttentionLaw::softmax, NumberScale::units, 50},
    {&AttentionLaw::softmax_slope}, {&AttentionLaw::start_us},      {&AttentionLaw::heat}};
const std::vector<FreeNumber<KernelRates>> kProductRates = {
    {&KernelRates::bf16}, {&KernelRates::fp8}, {&KernelRates::memory}, {&KernelRates::start_us}};
const std::vector<FreeNumber<KernelRates>> kAttentionRates = {{&KernelRates::attention},
                                                              {&KernelRates::attention_tail}};

// Changes numbers so that f of them becomes least.
template <class Numbers, class F>
void minimise(Numbers& numbers, const std::vector<FreeNumber<Numbers>>& free, const F& f) {
  std::vector<FreeNumber<Numbers>> kept;
  for (const FreeNumber<Numbers>& n : free) {
    if (numbers.*n.number != 0) kept.push_back(n);
  }
  std::vector<double> start;
  for (const FreeNumber<Numbers>& n : kept) start.push_back(seen(numbers.*n.number, n.scale, n.unit));
  const auto with = [&](const std::vector<double>& values) {
    Numbers changed = numbers;
    for (std::size_t i = 0; i < kept.size(); ++i)
      changed.*kept[i].number = number_of(values[i], kept[i].scale, kept[i].unit);
    return changed;
  };
  const auto value = [&](const std::vector<double>& values) { return f(with(values)); };
  numbers = with(least_by_simplex(value, start, kFirstStep, kCallsOfNumber * static_cast<int>(start.size())));
}

template <class Row>
struct FitSample {
  Gpu gpu;
  std::vector<Row> rows;
  KernelRates* rates = nullptr;
};

template <class Row, class Law>
double error_of(const FitSample<Row>& sample, const KernelRates& rates, const Law& law) {
  double sum = 0;
  for (const Row& row : sample.rows)
    sum += std::min(kFarOff, std::abs(std::log(time_of(row, sample.gpu, rates, law) / row.measured)));
  return sum / static_cast<double>(sample.rows.size());
}

template <class Row, class Law>
void fit_family(std::vector<FitSample<Row>>& samples, Law& law, const std::vector<FreeNumber<Law>>& of_law,
                const std::vector<FreeNumber<KernelRates>>& of_gpu) {
  const auto fit_rates = [&] {
    for (FitSample<Row>& s : samples)
      minimise(*s.rates, of_gpu, [&](const KernelRates& rates) { return error_of(s, rates, law); });
  };
  for (int round = 0; round < kFitRounds; ++round) {
    fit_rates();
    minimise(law, of_law, [&](const Law& changed) {
      double sum = 0;
      for (const FitSample<Row>& s : samples) sum += error_of(s, *s.rates, changed);
      return sum;
    });
  }
  fit_rates();
}

// Returns every so many of the rows, and all of them if they are few.
std::vector<const KernelRow*> thinned(const std::vector<const KernelRow*>& rows) {
  std::vector<const KernelRow*> kept;
  const std::size_t n = std::min(kFitRows, rows.size());
  for (std::size_t i = 0; i < n; ++i) kept.push_back(rows[i * rows.size() / n]);
  return kept;
}

// The rows of a GPU that laws are fitted to, by precision.
std::vector<const KernelRow*> rows_to_fit(const KernelRows& rows, const KernelLaws& laws, const std::string& gpu,
                                          bool attention, std::string_view precision) {
  std::vector<const KernelRow*> taken;
  for (const KernelRow& row : rows.rows) {
    if (row.gpu == gpu && row.precision == precision && row.kind.starts_with("attention") == attention &&
        !is_judged(row) && is_fitted(row, laws))
      taken.push_back(&row);
  }
  return thinned(taken);
}

// The rates of a GPU to begin with: those that it has, else what other GPUs tell of it.
KernelRates* rates_of(KernelLaws& laws, const std::string& gpu) {
  if (!laws.rates.contains(gpu)) {
    const KernelRates told = rates_from_others(laws, gpu);
    laws.rates[gpu] = told;
  }
  return &laws.rates[gpu];
}

std::vector<FitSample<ProductRow>> product_samples(const KernelRows& rows, KernelLaws& laws,
                                                   const std::vector<std::string>& gpus, std::string_view without) {
  std::vector<FitSample<ProductRow>> samples;
  for (const std::string& name : gpus) {
    if (name == without) continue;
    FitSample<ProductRow> sample{.gpu = find_gpu(name), .rows = {}, .rates = rates_of(laws, name)};
    for (const char* precision : {"bfloat16", "fp8"}) {
      for (const KernelRow* row : rows_to_fit(rows, laws, name, false, precision))
        if (const auto product = product_row(*row, sample.gpu)) sample.rows.push_back(*product);
    }
    if (!sample.rows.empty()) samples.push_back(std::move(sample));
  }
  return samples;
}

std::vector<FitSample<AttentionRow>> attention_samples(const KernelRows& rows, KernelLaws& laws,
                                                       const std::vector<std::string>& gpus, std::string_view without) {
  std::vector<FitSample<AttentionRow>> samples;
  for (const std::string& name : gpus) {
    if (name == without) continue;
    FitSample<AttentionRow> sample{.gpu = find_gpu(name), .rows = {}, .rates = rates_of(laws, name)};
    for (const KernelRow* row : rows_to_fit(rows, laws, name, true, "bfloat16"))
      if (const auto attention = attention_row(*row)) sample.rows.push_back(*attention);
    if (!sample.rows.empty()) samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace

KernelLaws fit_kernel_laws(const KernelRows& rows, KernelLaws laws, std::string_view without,
                           const std::function<void(std::string_view)>& progress) {
  const auto says = [&](const std::string& family) {
    if (progress)
      progress(without.empty() ? "fitting " + family : fmt::format("fitting {} without {}", family, without));
  };
  const auto touched = [&](const auto& family) {
    return without.empty() || std::find(family.gpus.begin(), family.gpus.end(), without) != family.gpus.end();
  };
  for (auto& family : laws.products) {
    if (!touched(family)) continue;
    says(family.name);
    auto samples = product_samples(rows, laws, family.gpus, without);
    if (!samples.empty()) fit_family(samples, family.law, kProductNumbers, kProductRates);
  }
  for (auto& family : laws.attention) {
    if (!touched(family)) continue;
    says(family.name);
    auto samples = attention_samples(rows, laws, family.gpus, without);
    if (!samples.empty()) fit_family(samples, family.law, kAttentionNumbers, kAttentionRates);
  }
  return laws;
}

}  // namespace orrery
