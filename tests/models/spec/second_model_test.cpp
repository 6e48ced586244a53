#include "models/spec/second_model.h"

#include <gtest/gtest.h>

#include "models/spec/spec.h"

namespace orrery {
namespace {

Spec with_second(SecondModel::Role role) {
  Spec spec;
  spec.model.hidden = 8;
  spec.second.emplace();
  spec.second->role = role;
  spec.second->model.hidden = 16;
  return spec;
}

TEST(SecondModel, HasWeightsThatSayWhoseTheyAre) {
  const Spec spec = with_second(SecondModel::Role::teacher);
  EXPECT_TRUE(of_second_model(spec, "layer 3 teacher attention.qkv.weight"));
  EXPECT_TRUE(of_second_model(spec, "teacher output.weight"));
  EXPECT_FALSE(of_second_model(spec, "layer 3 attention.qkv.weight"));
  EXPECT_EQ(model_of(spec, "teacher output.weight").hidden, 16);
  EXPECT_EQ(model_of(spec, "output.weight").hidden, 8);
  EXPECT_FALSE(of_second_model(Spec(), "teacher output.weight"));
}

TEST(SecondModel, BeginsAsThePolicyIfItIsTheReference) {
  const Spec policy = with_second(SecondModel::Role::reference), student = with_second(SecondModel::Role::teacher);
  EXPECT_EQ(initial_name(policy, "layer 3 reference mlp.up.weight"), "layer 3 mlp.up.weight");
  EXPECT_EQ(initial_name(policy, "reference output.weight"), "output.weight");
  EXPECT_EQ(initial_name(policy, "output.weight"), "output.weight");
  EXPECT_EQ(initial_name(student, "teacher output.weight"), "teacher output.weight");
}

}  // namespace
}  // namespace orrery
