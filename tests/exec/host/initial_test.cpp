#include "exec/host/initial.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/exec/jobs.h"

namespace orrery {
namespace {

using test::Job;
using test::tiny_job;

const std::string kModel =
    "name: tiny, layers: 3, hidden: 33, heads: 4, kv_heads: 2, head_dim: 6, feed_forward: 44, vocab: 67, bias: true, "
    "norm: layernorm, tied_embeddings: true";

// The weights of the model, put together from the elements that the ranks of a job own; every element that two ranks
// own is the same.
std::map<std::string, std::vector<float>> initial_weights(const Job& job, std::uint64_t seed) {
  std::map<std::string, std::vector<float>> all;
  for (std::int64_t r = 0; r < job.plan.ranks; ++r) {
    const Rank rank = job.rank(r);
    CachingMemory memory(host_segments());
    const Buffers buffers(rank, memory);
    set_initial_weights(rank, seed, buffers);
    for (const auto& [name, owned] : owned_values(rank, buffers, Quantity::weights)) {
      auto& values = all[name];
      values.resize(static_cast<std::size_t>(owned.shape[0] * owned.shape[1]), NAN);
      EXPECT_EQ(owned.places.size(), owned.values.size());
      for (std::size_t i = 0; i < owned.places.size(); ++i) {
        float& v = values.at(static_cast<std::size_t>(owned.places[i]));
        EXPECT_TRUE(std::isnan(v) || v == owned.values[i]) << name;
        v = owned.values[i];
      }
    }
  }
  return all;
}

TEST(Initial, EveryLayoutBeginsFromTheSameModel) {
  const auto one = initial_weights(tiny_job("global_batch: 1", kModel), 5);
  for (const char* strategy :
       {"data: 3, global_batch: 3, sharding: zero1", "data: 3, global_batch: 3, sharding: zero2",
        "data: 3, global_batch: 3, sharding: zero3", "data: 5, global_batch: 5, sharding: fsdp",
        "tensor: 2, global_batch: 1", "tensor: 4, data: 3, global_batch: 3, sharding: fsdp",
        "pipeline: 3, global_batch: 3", "tensor: 2, pipeline: 3, data: 3, global_batch: 9, sharding: zero1"}) {
    SCOPED_TRACE(strategy);
    const auto cut = initial_weights(tiny_job(strategy, kModel), 5);
    ASSERT_EQ(cut.size(), one.size());
    for (const auto& [name, values] : one) {
      const auto& other = cut.at(name);
      ASSERT_GE(other.size(), values.size()) << name;  // padding rows may follow
      EXPECT_TRUE(std::equal(values.begin(), values.end(), other.begin())) << name;
      for (const float v : other) EXPECT_FALSE(std::isnan(v)) << name;
    }
  }
}

TEST(Initial, HasTheDeviationOfGpt2) {
  const Job job = tiny_job("global_batch: 1", kModel);
  const auto weights = initial_weights(job, 5), others = initial_weights(job, 6);
  for (const auto& [name, values] : weights) {
    double sum = 0, squares = 0;
    for (const float v : values) {
      sum += v;
      squares += v * v;
    }
    const auto n = static_cast<double>(values.size());
    if (name.ends_with(".bias")) {
      EXPECT_EQ(squares, 0) << name;
    } else if (name.ends_with("norm.weight")) {
      EXPECT_EQ(sum, n) << name;
      EXPECT_EQ(squares, n) << name;
    } else {
      EXPECT_NEAR(sum / n, 0, 4 * 0.02 / std::sqrt(n)) << name;
      EXPECT_NEAR(std::sqrt(squares / n), 0.02, 4 * 0.02 / std::sqrt(2 * n)) << name;
      EXPECT_NE(values, others.at(name)) << name;
    }
  }
  EXPECT_NE(weights.at("layer 0 mlp.up.weight"), weights.at("layer 1 mlp.up.weight"));
}

}  // namespace
}  // namespace orrery
