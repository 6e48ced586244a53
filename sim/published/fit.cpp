#include "sim/published/fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <Eigen/Cholesky>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"
#include "sim/engine/simulate.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

// The most measured steps of one publication that the fit uses: with more, the largest publication would decide the
// result.
constexpr std::size_t kSample = 40;
constexpr double kNudge = 1.05;  // factor by which a constant is changed to find how predictions depend on it
constexpr double kNoise = 0.05;  // standard deviation of one step's ln(predicted / measured)

// Standard deviation of the error that all steps of a publication share, whatever the fitted constants are: with one
// set of constants, the time of one and the same layer of a 175B model is off by -1, +2 and +4.5 to +6.7 % in three
// publications. Without this term the fit would greatly change a constant that hardly affects a step, to remove that
// difference.
constexpr double kSourceNoise = 0.035;
// A residual, ln(predicted / measured), above this size counts linearly instead of quadratically (Huber).
constexpr double kHuber = 0.08;
// The fit changes the natural logarithm of a fitted constant by this much at most: farther from the built-in value, the
// derivatives that the fit uses are wrong.
constexpr double kFarthest = 0.7;
constexpr int kRounds = 12;

// Whether a fitted constant belongs to the kernel profile `profile` or to the software profile `software`.
// FittedNumber::holders has names such as "profile ampere" or "software nanotron".
bool holds(const FittedNumber& n, const std::string& profile, const std::string& software) {
  return std::any_of(n.holders.begin(), n.holders.end(),
                     [&](const std::string& h) { return h == "profile " + profile || h == "software " + software; });
}

struct LeftOutWord {
  LeftOutBy by;
  std::string_view name;
};
constexpr std::array kLeftOutWords = {LeftOutWord{LeftOutBy::source, "source"},
                                      LeftOutWord{LeftOutBy::release, "release"},
                                      LeftOutWord{LeftOutBy::model, "model"}};

// The name of what is left out with a step: all steps of one name are left out together.
const std::string& left_out_with(const PublishedRow& row, LeftOutBy by) {
  const std::string& name = by == LeftOutBy::release ? row.release : by == LeftOutBy::model ? row.model : row.source;
  return name.empty() ? row.source : name;
}

bool of_software(const FittedNumber& n) { return n.holders.front().starts_with("software "); }

void scale(Software& software, std::string_view key, double factor) {
  for (const SoftwareKey& k : software_keys()) {
    if (k.name != key) continue;
    const auto& field = std::get<SoftwareValue<double>>(k.field);
    return field.set(software, field.get(software) * factor);
  }
  throw Error(fmt::format("fitted.json: software has no '{}'", key));
}

struct FitRow {
  const PublishedRow* row = nullptr;
  bool usable = false;
  double residual = 0;  // ln(predicted / measured step time) with the built-in constants
  // pairs (index of a fitted constant, derivative of `residual` with respect to the constant's natural logarithm)
  std::vector<std::pair<Eigen::Index, double>> slopes;
};

// Predicts the time of one published step with changed values of some constants. The plan is made once; for each
// prediction only the costs of ops are computed anew.
class Priced {
 public:
  explicit Priced(const PublishedRow& row)
      : spec_(parse_spec(row.spec, row.id)), profile_(profile_for(spec_, "")), plan_(make_plan(spec_)) {
    const Costs costs = costs_of(plan_, spec_, profile_);
    calls_ = make_report(spec_, plan_, costs, simulate(plan_, costs.timing), profile_).memory.device_calls;
  }

  bool has(const FittedNumber& n) const { return holds(n, profile_.name, spec_.software.name); }

  // The step time in seconds. shifts: for each fitted constant, the change of its natural logarithm.
  double step_time(const std::vector<FittedNumber>& numbers, const std::vector<double>& shifts) const {
    Spec spec = spec_;
    Profile profile = profile_;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (shifts[i] == 0 || !has(numbers[i])) continue;
      const double factor = std::exp(shifts[i]);
      if (of_software(numbers[i]))
        scale(spec.software, numbers[i].key, factor);
      else
        scale(profile, numbers[i].key, factor);
    }
    return seconds(simulate(plan_, costs_of(plan_, spec, profile).timing).step_time) +
           static_cast<double>(calls_) * spec.software.host.segment_us * kMicrosecond;
  }

 private:
  Spec spec_;
  Profile profile_;
  Plan plan_;
  // Number of cudaMalloc and cudaFree calls in a step with the built-in constants; the fit leaves it unchanged.
  std::int64_t calls_ = 0;
};

FitRow with_slopes(const PublishedRow& row, const std::vector<FittedNumber>& numbers) {
  FitRow r;
  r.row = &row;
  try {
    const Priced priced(row);
    std::vector<double> shifts(numbers.size(), 0);
    const double built_in = priced.step_time(numbers, shifts);
    r.residual = std::log(built_in / *row.step_time_s);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (!priced.has(numbers[i])) continue;
      shifts[i] = std::log(kNudge);
      const double slope = std::log(priced.step_time(numbers, shifts) / built_in) / shifts[i];
      shifts[i] = 0;
      if (slope != 0) r.slopes.emplace_back(static_cast<Eigen::Index>(i), slope);
    }
    r.usable = true;
  } catch (const Error&) {  // the step cannot be predicted; predict_published() reports why
  }
  return r;
}

// The index in `numbers` of the constant that `number` resembles: it has the same key, and belongs to the profile
// FittedNumber::like.
std::size_t akin_to(const FittedNumber& number, const std::vector<FittedNumber>& numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::vector<std::string>& holders = numbers[i].holders;
    if (numbers[i].key == number.key && std::find(holders.begin(), holders.end(), number.like) != holders.end())
      return i;
  }
  throw Error(fmt::format("fitted.json: '{}' has no '{}' to be like", number.like, number.key));
}

// Adds to the normal equations (a x = b) the terms that hold every fitted constant near its prior, in units of the
// constant's standard deviation.
void add_priors(const std::vector<FittedNumber>& numbers, Eigen::MatrixXd& a, Eigen::VectorXd& b) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double stiffness = 1 / (numbers[i].spread * numbers[i].spread);
    const double pull = stiffness * std::log(numbers[i].prior / numbers[i].value);
    a(i, i) += stiffness;
    b(i) += pull;
    if (numbers[i].like.empty()) continue;
    const std::size_t j = akin_to(numbers[i], numbers);
    a(j, j) += stiffness;
    a(i, j) -= stiffness;
    a(j, i) -= stiffness;
    b(j) -= pull;
  }
}

// The terms of a step's residual in the fit, as (index of an unknown, derivative): those of the fitted constants, and
// that of the offset that all steps of the publication share. own: index of that offset.
std::vector<std::pair<Eigen::Index, double>> terms_of(const FitRow& r, Eigen::Index own) {
  std::vector<std::pair<Eigen::Index, double>> terms = r.slopes;
  terms.emplace_back(own, 1.0);
  return terms;
}

// Adds a step's residual and slopes to the normal equations (a x = b). A residual that is larger than kHuber at the
// solution x counts linearly.
void add_row(const FitRow& r, Eigen::Index own, const Eigen::VectorXd& x, Eigen::MatrixXd& a, Eigen::VectorXd& b) {
  const auto terms = terms_of(r, own);
  double residual = r.residual;
  for (const auto& [i, slope] : terms) residual += slope * x(i);
  const double off = std::abs(residual);
  const double weight = (off > kHuber ? kHuber / off : 1) / (kNoise * kNoise);
  for (const auto& [i, si] : terms) {
    b(i) -= weight * si * r.residual;
    for (const auto& [j, sj] : terms) a(i, j) += weight * si * sj;
  }
}

// For each fitted constant, the change of its natural logarithm with which predictions fit the measured steps best.
std::vector<double> fitted(const std::vector<const FitRow*>& rows, const std::vector<FittedNumber>& numbers) {
  // For each publication, the index in the solution of the offset that its steps share. The fitted constants have the
  // lower indices.
  std::map<std::string, Eigen::Index> own;
  const auto count = static_cast<Eigen::Index>(numbers.size());
  for (const FitRow* r : rows) own.try_emplace(r->row->source, count + static_cast<Eigen::Index>(own.size()));
  const Eigen::Index n = count + static_cast<Eigen::Index>(own.size());
  Eigen::VectorXd x = Eigen::VectorXd::Zero(n);
  for (int round = 0; round < kRounds; ++round) {
    Eigen::MatrixXd a = Eigen::MatrixXd::Zero(n, n);
    Eigen::VectorXd b = Eigen::VectorXd::Zero(n);
    add_priors(numbers, a, b);
    a.diagonal().tail(n - count).setConstant(1 / (kSourceNoise * kSourceNoise));
    for (const FitRow* r : rows) add_row(*r, own.at(r->row->source), x, a, b);
    x = a.llt().solve(b).cwiseMax(-kFarthest).cwiseMin(kFarthest);
  }
  return {x.data(), x.data() + count};
}

// A sample of the measured steps, evenly spaced over the steps of each publication, in the order of `rows`.
std::vector<const PublishedRow*> sample_rows(const std::vector<PublishedRow>& rows) {
  std::map<std::string, std::vector<const PublishedRow*>> by_source;
  for (const PublishedRow& r : rows) {
    if (r.doubtful.empty() && r.step_time_s) by_source[r.source].push_back(&r);
  }
  std::vector<const PublishedRow*> result;
  for (const auto& [source, list] : by_source) {
    const std::size_t taken = std::min(list.size(), kSample);
    for (std::size_t i = 0; i < taken; ++i) result.push_back(list[i * list.size() / taken]);
  }
  return result;
}

// Two predictions of a measured step by which the fit is judged: one with constants fitted without the step's
// publication (whole), one with constants fitted without the half of the publication that contains the step (half).
struct Judgement {
  std::size_t row = 0;
  const std::vector<double>* whole = nullptr;
  const std::vector<double>* half = nullptr;
  double without_source = 0, without_half = 0;  // errors of the two predictions of the step: predicted / measured - 1
};

void judge(Judgement& j, const FitRow& row, const std::vector<FittedNumber>& numbers) {
  const Priced priced(*row.row);
  j.without_source = priced.step_time(numbers, *j.whole) / *row.row->step_time_s - 1;
  j.without_half = priced.step_time(numbers, *j.half) / *row.row->step_time_s - 1;
}

// Measured over predicted time of a step with the constants that were fitted without its publication.
std::optional<double> ratio_of(const PublishedRow& row, const std::vector<double>& shifts,
                               const std::vector<FittedNumber>& numbers) {
  if (!row.doubtful.empty() || !row.step_time_s) return std::nullopt;
  try {
    return *row.step_time_s / Priced(row).step_time(numbers, shifts);
  } catch (const Error&) {  // the step cannot be predicted; predict_published() reports why
    return std::nullopt;
  }
}

std::vector<LeftOut> summed(const std::vector<FitRow>& rows, const std::vector<Judgement>& judgements, LeftOutBy by) {
  std::map<std::string, LeftOut> by_source;
  for (const Judgement& j : judgements) {
    LeftOut& s = by_source[left_out_with(*rows[j.row].row, by)];
    s.source = left_out_with(*rows[j.row].row, by);
    ++s.rows;
    s.in_sample += std::abs(std::exp(rows[j.row].residual) - 1);
    s.left_out += std::abs(j.without_source);
    s.left_out_bias += j.without_source;
    s.halves += std::abs(j.without_half);
  }
  std::vector<LeftOut> result;
  for (auto& [source, s] : by_source) {
    const auto n = static_cast<double>(s.rows);
    for (double* mean : {&s.in_sample, &s.left_out, &s.left_out_bias, &s.halves}) *mean /= n;
    result.push_back(s);
  }
  return result;
}

}  // namespace

std::vector<FittedNumber> fitted_numbers() {
  std::vector<FittedNumber> numbers;
  const nlohmann::json file = nlohmann::json::parse(data_file("fitted.json"));
  for (const nlohmann::json& n : file.at("numbers")) {
    numbers.push_back({n.at("of").get<std::vector<std::string>>(), n.at("key").get<std::string>(),
                       n.at("value").get<double>(), n.at("prior").get<double>(), n.at("spread").get<double>(),
                       n.value("like", ""), n.value("like_part", 1.0),
                       n.value("parts", std::map<std::string, double>())});
    for (const auto& [holder, part] : numbers.back().parts) {
      const std::vector<std::string>& holders = numbers.back().holders;
      if (of_software(numbers.back()) || std::find(holders.begin(), holders.end(), holder) == holders.end())
        throw Error(
            fmt::format("fitted.json: {}: {} has a part and is no profile that holds it", n.at("key").dump(), holder));
    }
  }
  return numbers;
}

namespace {

// Pointers to all values of a profile that belong to a key, such as the efficiencies of all tiles; the first is the one
// that number_of() returns.
std::vector<double*> places(Profile& p, std::string_view key) {
  std::vector<double*> result;
  if (key == "gemm.efficiency") {
    for (Tile& t : p.gemm.tiles) result.push_back(&t.efficiency);
  }
  for (AttentionKernel& k : p.attention) {
    if (key != "attention." + k.name) continue;
    for (auto head = k.heads.rbegin(); head != k.heads.rend(); ++head)
      result.insert(result.end(), {&head->forward_fraction, &head->backward_fraction});
  }
  struct Single {
    std::string_view key;
    double* place;
  };
  for (const Single& s :
       {Single{"gemm.prologue_us", &p.gemm.prologue_us}, Single{"gemm.batched_fraction", &p.gemm.batched_fraction},
        Single{"gemm.grouped_fraction", &p.gemm.grouped_fraction}, Single{"memory.fraction", &p.memory.fraction}}) {
    if (key == s.key) result.push_back(s.place);
  }
  if (result.empty()) throw Error(fmt::format("fitted.json: profile {} has no '{}'", p.name, key));
  return result;
}

}  // namespace

double number_of(const Profile& profile, std::string_view key) {
  Profile copy = profile;
  return *places(copy, key).front();
}

void scale(Profile& profile, std::string_view key, double factor) {
  for (double* place : places(profile, key)) *place *= factor;
}

LeftOutBy find_left_out(std::string_view name) {
  for (const LeftOutWord& word : kLeftOutWords) {
    if (word.name == name) return word.by;
  }
  throw Error(fmt::format("--by: '{}' is not source, release or model", name), 2);
}

Refit refit(const std::vector<PublishedRow>& all, const ForEach& for_each, LeftOutBy by) {
  Refit result;
  result.by = by;
  result.numbers = fitted_numbers();
  const std::vector<FittedNumber> numbers = result.numbers;
  const std::vector<const PublishedRow*> taken = sample_rows(all);
  std::vector<FitRow> rows(taken.size());
  for_each(rows.size(), [&](std::size_t i) { rows[i] = with_slopes(*taken[i], numbers); });
  std::erase_if(rows, [](const FitRow& r) { return !r.usable; });
  const auto fit_without = [&](const auto& left_out) {
    std::vector<const FitRow*> kept;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!left_out(i)) kept.push_back(&rows[i]);
    }
    return fitted(kept, numbers);
  };
  // By publication (release, model): the changes of the fitted constants' logarithms, from a fit [0] without it, [1]
  // without its even-numbered steps, [2] without its odd-numbered steps.
  std::map<std::string, std::array<std::vector<double>, 3>> without;
  for (const FitRow& r : rows) without.try_emplace(left_out_with(*r.row, by));
  for (auto& [group, shifts] : without) {
    const auto in = [&, name = group](std::size_t i) { return left_out_with(*rows[i].row, by) == name; };
    shifts = {fit_without(in), fit_without([&](std::size_t i) { return in(i) && i % 2 == 0; }),
              fit_without([&](std::size_t i) { return in(i) && i % 2 == 1; })};
  }
  std::vector<Judgement> judgements(rows.size());
  for_each(rows.size(), [&](std::size_t i) {
    const auto& shifts = without.at(left_out_with(*rows[i].row, by));
    judgements[i] = {.row = i, .whole = shifts.data(), .half = &shifts[1 + i % 2]};
    judge(judgements[i], rows[i], numbers);
  });
  result.ratios.resize(all.size());
  for_each(all.size(), [&](std::size_t i) {
    const auto own = without.find(left_out_with(all[i], by));
    if (own != without.end()) result.ratios[i] = ratio_of(all[i], own->second.front(), numbers);
  });
  const std::vector<double> best = fit_without([](std::size_t) { return false; });
  for (std::size_t i = 0; i < numbers.size(); ++i) result.numbers[i].value *= std::exp(best[i]);
  result.sources = summed(rows, judgements, by);
  for (LeftOut& s : result.sources) {
    s.numbers = numbers;
    for (std::size_t i = 0; i < numbers.size(); ++i) s.numbers[i].value *= std::exp(without.at(s.source)[0][i]);
  }
  result.rows = rows.size();
  return result;
}

}  // namespace orrery
