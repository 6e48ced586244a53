#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/memory/rank.h"
#include "exec/transport/transport.h"
#include "models/base/error.h"
#include "models/planner/make_plan.h"
#include "tests/models/plans.h"

namespace orrery::test {

// A spec with its plan, from which ranks are made; stays where it is, ranks refer to it.
struct Job {
  explicit Job(Spec s) : spec(std::move(s)), plan(make_plan(spec)) {}
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  Rank rank(std::int64_t number) const { return {spec, plan, number}; }

  const Spec spec;
  const Plan plan;
};

// A random spec whose plan fits 16 ranks and which CPU ranks could run; nullptr else.
inline std::unique_ptr<Job> random_job(std::uint64_t seed) {
  Spec spec = random_spec(seed);
  if (spec.strategy.gpus() > 16 || storage_bytes(spec.strategy.precision) == 0) return nullptr;
  spec.strategy.precision = spec.strategy.gradient_precision == Precision::fp32 ? Precision::fp32 : Precision::bf16;
  if (spec.strategy.gradient_precision == Precision::fp16) spec.strategy.gradient_precision = Precision::bf16;
  spec.strategy.overlap.tensor = false;
  spec.model.attention_softcap = spec.model.logit_softcap = 0;
  return std::make_unique<Job>(spec);
}

// A model of a few thousand weights on `strategy`.
inline const std::string kTiny =
    "name: tiny, layers: 2, hidden: 32, heads: 4, kv_heads: 2, feed_forward: 48, vocab: 64";
inline Job tiny_job(const std::string& strategy, const std::string& model = kTiny) {
  return Job(spec_of(model, "precision: fp32, gradient_precision: fp32, " + strategy, 16));
}

}  // namespace orrery::test
