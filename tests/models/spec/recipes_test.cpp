#include "models/spec/recipes.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/spec/spec.h"

namespace orrery {
namespace {

// Each is a complete spec under its own name, and says where its layout and its figure were printed.
TEST(Recipes, AreSpecsWithSources) {
  EXPECT_GE(recipe_names().size(), 9U);
  for (const std::string_view name : recipe_names()) {
    const NamedRecipe r = find_recipe(name);
    const Spec spec = load_spec(r.name);
    EXPECT_EQ(spec.name, name);
    EXPECT_EQ(spec.strategy.gpus(), spec.gpus) << name;
    EXPECT_FALSE(r.about.empty()) << name;
    EXPECT_NE(r.source.find_first_of("0123456789"), std::string::npos) << name;
    EXPECT_FALSE(r.figure_source.empty()) << name;
    EXPECT_GT(r.value, 0) << name;
  }
}

// Parameters as published, within a percent: 540.35 B, 176.25 B, 175 B.
TEST(Recipes, HaveThePublishedParameters) {
  const std::pair<const char*, double> rows[] = {
      {"palm-540b", 540.35e9}, {"bloom-176b", 176.25e9}, {"opt-175b", 175e9}};
  for (const auto& [name, parameters] : rows)
    EXPECT_NEAR(static_cast<double>(parameter_count(load_spec(name).model, load_spec(name).sequence)) / parameters, 1,
                0.01)
        << name;
}

TEST(Recipes, TakeOverrides) { EXPECT_EQ(load_spec("bloom-176b", {"strategy.micro_batch=4"}).strategy.micro_batch, 4); }

TEST(Recipes, AreNamedWhereOneIsMisspelt) {
  try {
    load_spec("bloom-167b");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean bloom-176b?"), std::string::npos) << error.what();
  }
  EXPECT_THROW(find_recipe("nothing"), Error);
}

}  // namespace
}  // namespace orrery
