#include "sim/kernels/fit_laws.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/error.h"
#include "models/cost/kernel_law_keys.h"
#include "sim/kernels/fit_experts.h"
#include "sim/kernels/fit_narrow.h"
#include "sim/kernels/fit_numbers.h"
#include "sim/kernels/law_rows.h"

namespace orrery {
namespace {

constexpr std::size_t kFitRows = 1000;  // rows of a kind of GPU and precision that the fit uses
constexpr int kFitRounds = 3;           // rounds of the GPUs' numbers and the family's

std::vector<FreeNumber<AttentionLaw>> attention_numbers() {
  auto numbers = free_numbers(kAttentionKeys);
  // The softmax's may be next to nothing, so that its logarithm would not tell; heads have 50 elements and more.
  for (auto& n : numbers)
    if (n.key.number == &AttentionLaw::softmax) n.scale = NumberScale::units, n.unit = 50;
  return numbers;
}

// The rates of products, or of attention.
std::vector<FreeNumber<KernelRates>> rate_numbers(bool attention) {
  auto numbers = free_numbers(kRateKeys);
  std::erase_if(numbers, [&](const auto& n) {
    const bool of_attention = n.key.number == &KernelRates::attention || n.key.number == &KernelRates::attention_tail;
    return of_attention != attention;
  });
  return numbers;
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
  for (const Row& row : sample.rows) sum += off(time_of(row, sample.gpu, rates, law), row.measured);
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
                                          bool attention, Precision precision) {
  std::vector<const KernelRow*> taken;
  for (const KernelRow& row : rows.rows) {
    if (row.gpu == gpu && is_attention(row) == attention && is_used_to_fit(row, laws) &&
        row.ops.back().precision == precision)
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
    for (const Precision precision : {Precision::bf16, Precision::fp8}) {
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
    for (const KernelRow* row : rows_to_fit(rows, laws, name, true, Precision::bf16))
      if (const auto attention = attention_row(*row)) sample.rows.push_back(*attention);
    if (!sample.rows.empty()) samples.push_back(std::move(sample));
  }
  return samples;
}

// Counts rows by their table, in words.
class Tables {
 public:
  void count(const KernelRows& rows, const KernelRow& row) {
    ++tables_[row.table < rows.tables.size() ? rows.tables[row.table] : row.gpu];
  }
  bool empty() const { return tables_.empty(); }
  std::string text() const {
    std::vector<std::string> list;
    for (const auto& [table, n] : tables_) list.push_back(fmt::format("{} ({})", table, n));
    return fmt::format("{}", fmt::join(list, ", "));
  }

 private:
  std::map<std::string, std::int64_t> tables_;
};

constexpr const char* kHowFitted =
    "fitted by orrery validate --kernels --fit to four of five groups of shapes, {} rows of each precision and GPU at "
    "most, of these tables (rows): {}";

constexpr const char* kHowExpertsFitted =
    "fitted by orrery validate --kernels --fit to four of five groups of shapes, {} rows of few tokens and as many of "
    "more of each format and GPU at most, of these tables (rows): {}";

// Says in the laws what they were fitted to: the number of rows of each table, and the GPUs whose numbers were kept.
void name_sources(const KernelRows& rows, KernelLaws& laws) {
  Tables tables, of_experts, of_narrow;
  std::set<std::string> fitted, kept;
  for (const KernelRow& row : rows.rows) {
    if (is_used_to_fit_experts(row, laws)) of_experts.count(rows, row);
    if (is_used_to_fit_narrow(row, laws)) of_narrow.count(rows, row);
    if (!is_used_to_fit(row, laws)) continue;
    tables.count(rows, row);
    fitted.insert(row.gpu + (is_attention(row) ? " (attention)" : " (products)"));
  }
  if (tables.empty() && of_experts.empty() && of_narrow.empty())
    throw Error(
        "--fit: no table has rows of the kernels that laws are fitted to; give tables of products, attention or "
        "experts");
  if (!of_experts.empty()) laws.experts_source = fmt::format(kHowExpertsFitted, kFitRowsOfExperts, of_experts.text());
  if (tables.empty()) return;
  for (const auto& [gpu, rates] : laws.rates) {
    for (const char* part : {" (products)", " (attention)"})
      if (!fitted.contains(gpu + part)) kept.insert(gpu + part);
  }
  laws.source = fmt::format(kHowFitted, kFitRows, tables.text()) +
                fmt::format("; numbers kept: {}", kept.empty() ? "none" : fmt::format("{}", fmt::join(kept, ", ")));
  if (!of_narrow.empty())
    laws.source +=
        fmt::format("; products in nvfp4: {} rows of a GPU at most, of {}", kFitNarrowRows, of_narrow.text());
}

}  // namespace

RowsToFit rows_to_fit_of(const KernelRows& rows, const KernelLaws& laws) {
  RowsToFit all;
  for (const KernelRow& row : rows.rows)
    if (is_used_to_fit(row, laws)) ++(is_attention(row) ? all.attention : all.products)[row.gpu];
  return all;
}

bool is_refitted(const std::map<std::string, std::int64_t>& rows, const std::vector<std::string>& gpus,
                 std::string_view without) {
  const auto has_rows = [&](const std::string& gpu) { return rows.contains(gpu); };
  const bool itself = rows.contains(std::string(without));
  return itself && std::any_of(gpus.begin(), gpus.end(), [&](const auto& g) { return g != without && has_rows(g); });
}

KernelLaws fit_kernel_laws(const KernelRows& rows, KernelLaws laws, std::string_view without,
                           const std::function<void(std::string_view)>& progress) {
  const auto says = [&](const std::string& family) {
    if (progress)
      progress(without.empty() ? "fitting " + family : fmt::format("fitting {} without {}", family, without));
  };
  const RowsToFit to_fit = rows_to_fit_of(rows, laws);
  // A family changes without a GPU only if it holds that GPU, whose rows are then missing.
  const auto touched = [&](const auto& family, const auto& numbers) {
    const bool member = std::find(family.gpus.begin(), family.gpus.end(), without) != family.gpus.end();
    return without.empty() || (member && is_refitted(numbers, family.gpus, without));
  };
  for (auto& family : laws.products) {
    if (!touched(family, to_fit.products)) continue;
    says(family.name);
    auto samples = product_samples(rows, laws, family.gpus, without);
    if (!samples.empty()) fit_family(samples, family.law, free_numbers(kProductKeys), rate_numbers(false));
  }
  for (auto& family : laws.attention) {
    if (!touched(family, to_fit.attention)) continue;
    says(family.name);
    auto samples = attention_samples(rows, laws, family.gpus, without);
    if (!samples.empty()) fit_family(samples, family.law, attention_numbers(), rate_numbers(true));
  }
  if (without.empty()) {
    for (auto& family : laws.narrow) {
      says(family.name);
      fit_narrow(rows, family);
    }
    for (auto& family : laws.experts) {
      says(family.name);
      fit_experts(rows, laws, family);
    }
    name_sources(rows, laws);
  }
  return rounded(std::move(laws));
}

}  // namespace orrery
