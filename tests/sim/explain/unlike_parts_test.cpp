// Formulas where stages or layers differ from each other.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "models/load/load_spec.h"
#include "sim/explain/formulas.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

Spec dgx_spec(const std::vector<std::string>& overrides) {
  return parse_spec("{model: gpt2, sequence: 1024, cluster: {node: dgx-a100, nodes: 1}, strategy: {global_batch: 16}}",
                    "spec.yaml", overrides);
}

// Muon keeps second moments of embeddings and vectors alone: stages with an end of the model have more of them, and a
// tied table counts once.
TEST(Formulas, SecondMomentsOfMuonGoByStage) {
  for (const char* layout : {"strategy.pipeline=1", "strategy.pipeline=4"}) {
    for (const char* tied : {"true", "false"}) {
      const Spec spec = dgx_spec({"strategy.optimizer=muon", layout, fmt::format("model.tied_embeddings={}", tied)});
      const Prediction p = predict(spec);
      for (std::size_t s = 0; s < p.plan.classes.size(); ++s) {
        const StateFormula f = of_slot(state_formula(spec, p.plan, Dimension::data, s), p.plan, s);
        EXPECT_NEAR(f.bytes(static_cast<double>(elements_of(p.plan, s))),
                    static_cast<double>(states_in_plan(p.plan, s)), 100)
            << layout << ' ' << tied << ' ' << p.plan.classes[s].name;
      }
    }
  }
}

// With adapters on multi-layer perceptrons alone the first layer's attention has no backward, so that its keys, values
// and queries move in forward only.
TEST(Formulas, ContextVolumeKnowsLayersThatDoNotRunBack) {
  for (const char* kind : {"ring", "allgather", "ulysses"}) {
    for (const char* recompute : {"none", "full"}) {
      const Spec spec =
          dgx_spec({"strategy.context=4", fmt::format("strategy.context_kind={}", kind), "model.layers=2",
                    fmt::format("strategy.recompute={}", recompute), "model.lora={rank: 4, targets: mlp}"});
      const Prediction p = predict(spec);
      double simulated = 0, by_form = 0;
      for (const Volume& v : volumes(spec, p.plan, p.report)) {
        if (v.what != "context") continue;
        simulated = v.simulated;
        by_form = v.bytes;
      }
      ASSERT_GT(by_form, 0);
      EXPECT_NEAR(simulated / by_form, 1, 1e-3) << kind << ' ' << recompute;
    }
  }
}

}  // namespace
}  // namespace orrery
