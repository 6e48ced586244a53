#include "sim/published/fit.h"

#include <cmath>
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/error.h"
#include "models/spec/software.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

const ForEach kInTurn = [](std::size_t n, const std::function<void(std::size_t)>& work) {
  for (std::size_t i = 0; i < n; ++i) work(i);
};

// The file lists the built-in values, and only the constants that may be fitted.
TEST(PublishedFit, EveryListedNumberIsTheBuiltInOne) {
  std::map<std::string, int> count;
  for (const FittedNumber& n : fitted_numbers()) {
    for (const std::string& holder : n.holders) {
      ++count[holder];
      const std::size_t space = holder.find(' ');
      const std::string kind = holder.substr(0, space), name = holder.substr(space + 1);
      if (kind == "software") {
        const Software software = find_software(name);
        for (const SoftwareKey& key : software_keys()) {
          if (key.name != n.key) continue;
          EXPECT_NEAR(std::get<SoftwareValue<double>>(key.field).get(software), n.value, 1e-9)
              << holder << ' ' << n.key;
        }
      } else {
        Gpu gpu;
        gpu.id = name;
        for (const Architecture a : {Architecture::volta, Architecture::ampere, Architecture::ada, Architecture::hopper,
                                     Architecture::blackwell}) {
          if (name_of(a) == name) gpu.architecture = a;
        }
        const bool whole = !n.parts.contains(holder);
        EXPECT_NEAR(number_of(find_profile(gpu), n.key), n.value * (whole ? 1 : n.parts.at(holder)),
                    whole ? 1e-9 : 5e-4)
            << holder << ' ' << n.key;
      }
      EXPECT_GT(n.prior, 0);
      EXPECT_GT(n.spread, 0);
    }
  }
  for (const auto& [holder, numbers] : count) EXPECT_LE(numbers, 4) << holder;
}

TEST(PublishedFit, ScalingMovesWhatAKeyStandsFor) {
  Profile p;
  p.gemm.tiles = {{256, 128, 0.8}, {64, 64, 0.4}};
  p.attention = {{"fa2", 5, {{64, 0.4, 0.3, 0, 0}, {128, 0.5, 0.4, 0, 0}}}};
  scale(p, "gemm.efficiency", 0.5);
  scale(p, "attention.fa2", 2);
  EXPECT_DOUBLE_EQ(p.gemm.tiles[1].efficiency, 0.2);
  EXPECT_DOUBLE_EQ(number_of(p, "gemm.efficiency"), 0.4);
  EXPECT_DOUBLE_EQ(number_of(p, "attention.fa2"), 1);
  EXPECT_DOUBLE_EQ(p.attention[0].heads[0].backward_fraction, 0.6);
  EXPECT_THROW(scale(p, "gemm.colour", 2), Error);
}

class Fit : public ::testing::Test {
 protected:
  // Rows of one source, "measured" as predicted times `slower`.
  std::vector<PublishedRow> rows(const std::string& source, double slower) {
    nlohmann::json list;
    for (int i = 0; i < 6; ++i) {
      list.push_back(
          {{"id", source + std::to_string(i)},
           {"group", source},
           {"spec",
            {{"model", {{"layers", 2 + i}, {"hidden", 4096}, {"heads", 32}, {"feed_forward", 16384}, {"vocab", 32000}}},
             {"sequence", 2048},
             {"cluster", {{"node", "dgx-a100"}, {"nodes", 1}}},
             {"gpus", 8},
             {"software", "megatron-core"},
             {"strategy", {{"global_batch", 16}, {"micro_batch", 2}}}}},
           {"measured", {{"step_time_s", 1}}}});
    }
    std::ofstream(folder_.path(source + ".json")) << list.dump();
    std::vector<PublishedRow> result = read_published(folder_.path(source + ".json"));
    for (PublishedRow& r : result) r.step_time_s = slower * predict_published(r, "").step_time_s;
    return result;
  }

 private:
  test::TemporaryFolder folder_;
};

double value_of(const std::vector<FittedNumber>& numbers, const std::string& holder, const std::string& key) {
  for (const FittedNumber& n : numbers) {
    if (n.holders.front() == holder && n.key == key) return n.value;
  }
  return 0;
}

TEST_F(Fit, SlowerRowsMeanSlowerProductsAndTheSameRowsTheSameFit) {
  const std::vector<PublishedRow> all = rows("one", 1.2);
  const Refit once = refit(all, kInTurn), twice = refit(all, kInTurn);
  EXPECT_LT(value_of(once.numbers, "profile ampere", "gemm.efficiency"),
            value_of(fitted_numbers(), "profile ampere", "gemm.efficiency"));
  EXPECT_EQ(refit_json(once, {}), refit_json(twice, {}));
  ASSERT_EQ(once.sources.size(), 1U);
  EXPECT_EQ(once.sources[0].rows, all.size());
  EXPECT_NEAR(once.sources[0].in_sample, 1 - 1 / 1.2, 1e-6);
  EXPECT_LT(once.sources[0].halves, 0.6 * once.sources[0].in_sample) << "its other half tells of it";
}

// Two clusters that differ by a tenth: each is predicted with the fit to the other.
TEST_F(Fit, ASourceIsJudgedByTheOthers) {
  std::vector<PublishedRow> all = rows("fast", 1), slow = rows("slow", 1.3);
  all.insert(all.end(), slow.begin(), slow.end());
  const Refit r = refit(all, kInTurn);
  ASSERT_EQ(r.sources.size(), 2U);
  EXPECT_GT(r.sources[0].left_out_bias, 0.05) << "the slow one is all that is known";
  EXPECT_LT(r.sources[1].left_out_bias, -0.05);
  ASSERT_EQ(r.sources[0].numbers.size(), r.numbers.size());
  const auto products = [&](std::size_t i) {
    return value_of(r.sources[i].numbers, "profile ampere", "gemm.efficiency");
  };
  EXPECT_LT(products(0), products(1)) << "as the slow one has them";
  EXPECT_NE(refit_json(r, {}).find("\"without\": ["), std::string::npos);
  EXPECT_LT(r.sources[1].halves, r.sources[1].left_out);
  EXPECT_NE(refit_text(r, {}).find("mean over sources"), std::string::npos);
}

// Steps of one release in two publications are left out together, and so are those of one model.
TEST_F(Fit, ReleasesAndModelsAreLeftOutWhole) {
  std::vector<PublishedRow> all = rows("fast", 1), slow = rows("slow", 1.3), other = rows("other", 1);
  for (PublishedRow& r : slow) r.release = r.model = "new";
  for (PublishedRow& r : other) r.release = r.model = "new";
  all.insert(all.end(), slow.begin(), slow.end());
  all.insert(all.end(), other.begin(), other.end());
  const Refit by_release = refit(all, kInTurn, LeftOutBy::release), by_model = refit(all, kInTurn, LeftOutBy::model);
  ASSERT_EQ(by_release.sources.size(), 2U);
  EXPECT_EQ(by_release.sources[0].source, "fast") << "a step without a release goes with its publication";
  EXPECT_EQ(by_release.sources[1].source, "new");
  EXPECT_EQ(by_release.sources[1].rows, 12U);
  EXPECT_EQ(by_release.ratios, by_model.ratios);
  EXPECT_NE(refit_text(by_release, {}).find("mean over releases"), std::string::npos);
  EXPECT_EQ(find_left_out("model"), LeftOutBy::model);
  EXPECT_THROW(find_left_out("colour"), Error);
}

// With the constants that were fitted without it, a publication's steps are as far off as their ratios say.
TEST_F(Fit, ErrorsWithoutASourceAreThoseOfItsRatios) {
  std::vector<PublishedRow> all = rows("fast", 1), slow = rows("slow", 1.3);
  all.insert(all.end(), slow.begin(), slow.end());
  std::vector<PublishedCase> cases;
  for (const PublishedRow& r : all) cases.push_back(predict_published(r, ""));
  cases.back().techniques = {"experts"};
  Refit r;
  r.ratios.assign(all.size(), 1.25);
  r.ratios.front() = std::nullopt;
  const LeftOutErrors errors = left_out_errors(cases, r);
  ASSERT_EQ(errors.steps.size(), 3U) << "two publications, and all";
  EXPECT_EQ(errors.steps[0].rows, 5U);
  EXPECT_NEAR(errors.steps[1].mean, 0.2, 1e-12);
  EXPECT_NEAR(errors.steps[1].bias, -0.2, 1e-12);
  ASSERT_EQ(errors.experts.size(), 1U);
  EXPECT_EQ(errors.experts[0].rows, 1U);
  const auto json = nlohmann::json::parse(refit_json(r, errors));
  EXPECT_EQ(json.at("left_out"), "source");
  EXPECT_EQ(json.at("experts").at(0).at("source"), "slow");
}

// A constant without rows of its own moves with the constant that it resembles.
TEST_F(Fit, NumbersMoveWithThoseTheyAreLike) {
  const std::vector<FittedNumber> built_in = fitted_numbers();
  const Refit r = refit(rows("one", 1), kInTurn);
  int akin = 0;
  for (std::size_t i = 0; i < built_in.size(); ++i) {
    const FittedNumber& n = built_in[i];
    if (n.like.empty()) continue;
    ++akin;
    const double other = value_of(built_in, n.like, n.key);
    EXPECT_NEAR(n.prior, n.like_part * other, 0.001 * n.prior) << n.key << ": of what the other one has built in";
    const double moved = value_of(r.numbers, n.like, n.key) / other;
    EXPECT_GT(std::abs(std::log(moved)), 0.01) << "no row holds it where it is built in";
    const double followed = std::log(r.numbers[i].value / n.value) - std::log(n.prior / n.value);
    EXPECT_LT(std::abs(followed - std::log(moved)), std::abs(std::log(moved))) << n.key;
  }
  EXPECT_GT(akin, 0);
}

}  // namespace
}  // namespace orrery
