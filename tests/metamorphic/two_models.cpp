// A frozen model beside the one that trains: its weights, and what the loss keeps of it.
#include <fmt/format.h>

#include "models/layers/blocks.h"
#include "models/planner/make_plan.h"
#include "models/spec/sharding.h"
#include "tests/metamorphic/relations.h"

namespace orrery::test {
namespace {

// Bytes of some buffers of the states of all ranks.
double in_states(const Plan& plan, std::initializer_list<std::uint16_t> buffers) {
  double sum = 0;
  for (const Frame& f : plan.frames) {
    const Block& block = plan.blocks[f.block];
    if (block.role != BlockRole::state) continue;
    for (const std::uint16_t b : buffers)
      sum += static_cast<double>(block.buffers[b].bytes * plan.classes[f.slot].multiplicity);
  }
  return sum;
}

// The bytes that the loss keeps of the second model for a micro-batch.
Bytes in_loss(const Plan& plan, std::string_view name) {
  Bytes most = 0;
  for (const Block& block : plan.blocks) {
    for (const BlockBuffer& b : block.buffers) most = std::max(most, b.name == name ? b.bytes : 0);
  }
  return most;
}

// Twice the elements of a second model, which has neither gradients nor optimizer states, once for each rank that does
// not share them. Ranks have copies of norms and of few key and value heads, and pad a vocabulary and shards.
void check_weights(Checks& checks, const Subject& s, const Plan& plan) {
  const Spec& spec = s.run.spec;
  const Strategy& st = spec.strategy;
  const Spec second = second_spec(spec);
  const double each = static_cast<double>(parameter_count(second.model, spec.sequence) * storage_bytes(st.precision));
  const double all = static_cast<double>(st.data * st.context);
  const ShardingRow& row = row_of(st.sharding);
  const double copies = !row.shards_parameters             ? all
                        : row.hybrid && st.shard_group > 0 ? all / static_cast<double>(st.shard_group)
                                                           : 1;
  // experts lie once on all ranks that share one set of shards, other weights once on a tensor group
  const double most = second.model.moe ? copies * static_cast<double>(st.tensor) : copies;
  const double held = in_states(plan, {kFrozen, kFrozenShard});
  const double least = second.model.moe ? 1 : copies;
  if (held < least * each * (1 - 1e-9) || held > most * each * 1.5 + 1e9)
    checks.violated("second weights", fmt::format("{:.6g} B, {:.6g} .. {:.6g} times {:.6g}", held, least, most, each),
                    s.spec);
}

}  // namespace

void two_models(Checks& checks, const Subject& s) {
  const Spec& spec = s.run.spec;
  if (!spec.second) return;
  const Plan plan = make_plan(spec);
  check_weights(checks, s, plan);
  Json trained = s.spec;
  for (const char* key : {"teacher", "distill", "dpo", "workload"}) trained.erase(key);
  if (!spec.model.moe)
    for (const char* key : {"strategy.expert", "strategy.expert_tensor"}) trained = with(trained, key, nullptr);
  const Run* alone = checks.simulate(trained);
  if (alone == nullptr) return checks.violated("second model", "refused alone: " + checks.refusal, s.spec, trained);
  const std::initializer_list<std::uint16_t> states = {kParameters, kParameterShard, kGradients, kGradientShard,
                                                       kMaster,     kMoment1,        kMoment2};
  const double beside = in_states(plan, states), before = in_states(make_plan(alone->spec), states);
  // Projections of hidden states train too.
  if (projects_features(spec) ? beside <= before : beside != before)
    checks.violated("second states", fmt::format("{:.9g} B, alone {:.9g}", beside, before), s.spec, trained);
  const bool teaches = spec.second->role == SecondModel::Role::teacher;
  const BlockContext c(spec, row_of(spec.strategy.sharding));
  const Bytes kept = c.rows * (teaches ? c.padded_vocab / c.tensor * 4 : 8);
  if (in_loss(plan, name_of(spec.second->role)) != kept)
    checks.violated("second in loss",
                    fmt::format("{} B, by its form {}", in_loss(plan, name_of(spec.second->role)), kept), s.spec);
}

}  // namespace orrery::test
