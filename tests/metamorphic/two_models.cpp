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

// The ranks of a stage on which an element of a second model's weight lies: one of those that share shards, if weights
// are sharded; and a tensor rank, or all where the weight is not cut. Experts lie on the ranks that share them out, and
// the tensor ranks of experts each hold what is not cut.
double ranks_with(const Spec& second, const Parameter& p) {
  const Strategy& st = second.strategy;
  const ShardingRow& row = row_of(st.sharding);
  const auto tensor = static_cast<double>(st.tensor), all = static_cast<double>(st.data * st.context);
  const double copies = !row.shards_parameters             ? all
                        : row.hybrid && st.shard_group > 0 ? all / static_cast<double>(st.shard_group)
                                                           : 1;
  const bool uncut = p.partition == Partition::replicated;
  if (p.experts > 0) {
    const auto cut = static_cast<double>(st.expert_tensor);
    return (row.shards_parameters ? copies : all * tensor / (static_cast<double>(st.expert) * cut)) * (uncut ? cut : 1);
  }
  return copies * (uncut ? tensor : 1);
}

// The elements that the ranks of a stage hold of a weight of the second model, with rows that pad a vocabulary and
// copies of key and value heads where there are more tensor ranks than such heads.
double held_of(const Spec& second, const BlockContext& c, const Parameter& p) {
  double sum = static_cast<double>(elements(p));
  if (p.partition == Partition::vocabulary) sum = static_cast<double>(c.padded_vocab * p.in);
  if (p.name.starts_with("attention.qkv"))
    sum += static_cast<double>((c.kv_copies - 1) * 2 * second.model.kv_heads * second.model.head_dim * p.in);
  return sum * ranks_with(second, p);
}

// A second model has neither gradients nor optimizer states: its weights are all that it holds, once on each of the
// ranks that do not share them. Shards are padded to one length, a layer's experts apart from its other weights.
void check_weights(Checks& checks, const Subject& s, const Plan& plan) {
  const Spec second = second_spec(s.run.spec);
  const Model& m = second.model;
  const Strategy& st = second.strategy;
  const BlockContext c(second, row_of(st.sharding));
  double sum = 0;
  const auto add = [&](const std::vector<Parameter>& list) {
    for (const Parameter& p : list) sum += held_of(second, c, p);
  };
  for (std::int64_t i = 0; i < m.layers; ++i) add(layer_parameters(m, i));
  const std::vector<Parameter> embedding = embedding_parameters(m, second.sequence);
  add(embedding);
  add(head_parameters(m));
  // the first and the last stage of a pipeline each hold a tied table
  if (m.tied_embeddings && st.pipeline > 1) sum += held_of(second, c, embedding.front());
  const auto width = static_cast<double>(storage_bytes(st.precision));
  const std::int64_t padded =
      row_of(st.sharding).shards_parameters ? 2 * (m.layers + 3) * st.tensor * st.data * st.context : 0;
  const double held = in_states(plan, {kFrozen, kFrozenShard}), least = sum * width,
               most = least + static_cast<double>(padded) * width;
  if (held < least * (1 - 1e-9) || held > most * (1 + 1e-9))
    checks.violated("second weights", fmt::format("{:.9g} B, by their forms {:.9g} .. {:.9g}", held, least, most),
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
  if (has_second_apart(spec)) trained["gpus"] = spec.strategy.gpus();
  if (!spec.model.moe)
    for (const char* key : {"strategy.expert", "strategy.expert_tensor"}) trained = with(trained, key, nullptr);
  const Run* alone = checks.simulate(trained);
  if (alone == nullptr) return checks.violated("second model", "refused alone: " + checks.refusal, s.spec, trained);
  const std::initializer_list<std::uint16_t> states = {kParameters, kParameterShard, kGradients, kGradientShard,
                                                       kMaster,     kMoment1,        kMoment2};
  const double beside = in_states(plan, states), before = in_states(make_plan(alone->spec), states);
  // Projections of hidden states train too, and rows that pad the vocabulary for more tensor ranks of the other model.
  const BlockContext c(spec, row_of(spec.strategy.sharding)), own(alone->spec, row_of(alone->spec.strategy.sharding));
  const bool more = projects_features(spec) || c.padded_vocab > own.padded_vocab;
  if (more ? beside <= before : beside != before)
    checks.violated("second states", fmt::format("{:.9g} B, alone {:.9g}", beside, before), s.spec, trained);
  const bool teaches = spec.second->role == SecondModel::Role::teacher;
  const Bytes kept = c.rows * (teaches ? c.padded_vocab / c.tensor * 4 : 8);
  if (in_loss(plan, name_of(spec.second->role)) != kept)
    checks.violated("second in loss",
                    fmt::format("{} B, by its form {}", in_loss(plan, name_of(spec.second->role)), kept), s.spec);
}

}  // namespace orrery::test
