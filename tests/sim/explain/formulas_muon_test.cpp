#include "sim/explain/formulas_muon.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "sim/predict/predict.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

struct Bytes2 {
  double formula = 0, simulated = 0;
};

std::map<std::string, Bytes2> volumes_of(const std::string& strategy) {
  const Spec spec = test::spec_of(test::kSmall, strategy);
  const Prediction p = predict(spec);
  std::map<std::string, Bytes2> result;
  for (const Volume& v : volumes(spec, p.plan, p.report)) result[v.what] = {v.bytes, v.simulated};
  return result;
}

// The formula of Muon adds to the volumes of AdamW as many bytes as the simulation; layers here divide by the numbers
// of ranks.
TEST(MuonFormula, IsWhatIsSimulated) {
  for (const char* strategy :
       {"data: 4, global_batch: 4", "data: 3, global_batch: 3", "data: 4, global_batch: 4, sharding: zero1",
        "data: 4, global_batch: 4, sharding: fsdp", "data: 4, global_batch: 4, sharding: hsdp, shard_group: 2",
        "tensor: 2, data: 2, global_batch: 2, sharding: zero3", "tensor: 4, data: 1, global_batch: 1",
        "pipeline: 2, data: 2, sharding: zero1, global_batch: 8"}) {
    auto muon = volumes_of(std::string(strategy) + ", optimizer: muon"), adamw = volumes_of(strategy);
    for (auto& [what, bytes] : muon) {
      const double formula = bytes.formula - adamw[what].formula, simulated = bytes.simulated - adamw[what].simulated;
      EXPECT_NEAR(formula, simulated, 1e-6 * bytes.simulated + 1) << what << ", " << strategy;
      EXPECT_GT(simulated, what == "data" ? 0 : -1) << strategy;
    }
  }
}

}  // namespace
}  // namespace orrery
