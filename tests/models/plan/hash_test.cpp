// The hash differs for any two plans that an engine would treat differently.
#include "models/plan/hash.h"

#include <functional>

#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

Plan small() {
  return make_plan(test::spec_of(std::string(test::kSmall) + ", tied_embeddings: true",
                                 "tensor: 2, pipeline: 2, data: 2, sharding: zero1, global_batch: 8"));
}

TEST(PlanHash, IsEqualForEqualPlans) {
  EXPECT_EQ(plan_hash(small()), plan_hash(small()));
  EXPECT_EQ(plan_hash(small()).size(), 16U);
}

TEST(PlanHash, ChangesWithEveryField) {
  const Plan plan = small();
  const auto op = [](auto change) { return [=](Plan& p) { change(p.ops[5]); }; };
  const auto frame = [](auto change) { return [=](Plan& p) { change(p.frames[9]); }; };
  const auto slot = [](auto change) { return [=](Plan& p) { change(p.blocks[1].buffers[3]); }; };
  const std::vector<std::pair<const char*, std::function<void(Plan&)>>> changes = {
      {"ranks", [](Plan& p) { ++p.ranks; }},
      {"micro-batches", [](Plan& p) { ++p.micro_batches; }},
      {"element bytes", [](Plan& p) { ++p.element_bytes; }},
      {"buffers", [](Plan& p) { ++p.buffers; }},
      {"op name", op([](Op& o) { o.name += "x"; })},
      {"op work", op([](Op& o) { o.work = Add{1}; })},
      {"op phase", op([](Op& o) { o.phase = Phase::step; })},
      {"op lane", op([](Op& o) { o.lane = LaneKind::cpu; })},
      {"op precision", op([](Op& o) { o.precision = Precision::nvfp4; })},
      {"op weight gradient", op([](Op& o) { o.weight_gradient = !o.weight_gradient; })},
      {"op recompute", op([](Op& o) { o.recompute = !o.recompute; })},
      {"op optimizer", op([](Op& o) { o.optimizer = !o.optimizer; })},
      {"op host waits", op([](Op& o) { o.host_waits = !o.host_waits; })},
      {"op run-time size", op([](Op& o) { o.runtime_size = 7; })},
      {"operand", op([](Op& o) { ++o.operands.front().slot; })},
      {"operand part", op([](Op& o) { o.operands.front().part = Part::kv; })},
      {"operand more", op([](Op& o) { o.operands.push_back({}); })},
      {"allocates", op([](Op& o) { o.allocates.push_back({}); })},
      {"frees", op([](Op& o) { o.frees.push_back({}); })},
      {"block name", [](Plan& p) { p.blocks[1].name += "x"; }},
      {"block role", [](Plan& p) { p.blocks[1].role = BlockRole::output; }},
      {"block forward", [](Plan& p) { std::swap(p.blocks[1].forward[0], p.blocks[1].forward[1]); }},
      {"block backward", [](Plan& p) { p.blocks[1].backward.pop_back(); }},
      {"parameter", [](Plan& p) { ++p.blocks[1].parameters[1].offset; }},
      {"parameter key/value rows", [](Plan& p) { ++p.blocks[1].parameters[0].kv_rows; }},
      {"parameter over", [](Plan& p) { p.blocks[1].parameters[0].over = Dimension::tensor_row; }},
      {"parameter columns over", [](Plan& p) { p.blocks[1].parameters[0].columns_over = Dimension::tensor; }},
      {"parameter in depth", [](Plan& p) { p.blocks[1].parameters[0].cut_in_depth ^= true; }},
      {"parameter sections", [](Plan& p) { p.blocks[1].parameters[0].sections.push_back(1); }},
      {"parameter partial", [](Plan& p) { p.blocks[1].parameters[0].partial ^= true; }},
      {"slot name", slot([](BlockBuffer& s) { s.name += "x"; })},
      {"slot bytes", slot([](BlockBuffer& s) { ++s.bytes; })},
      {"slot category", slot([](BlockBuffer& s) { s.category = Category::workspace; })},
      {"slot lazy", slot([](BlockBuffer& s) { s.lazy = !s.lazy; })},
      {"frame block", frame([](Frame& f) { ++f.block; })},
      {"frame buffers", frame([](Frame& f) { ++f.first_buffer; })},
      {"frame next", frame([](Frame& f) { ++f.next; })},
      {"frame previous", frame([](Frame& f) { ++f.previous; })},
      {"frame beside", frame([](Frame& f) { f.beside = 1; })},
      {"frame unit", frame([](Frame& f) { ++f.unit; })},
      {"frame state", frame([](Frame& f) { ++f.state; })},
      {"frame slot", frame([](Frame& f) { ++f.slot; })},
      {"frame layer", frame([](Frame& f) { ++f.layer; })},
      {"frame micro-batch", frame([](Frame& f) { ++f.micro_batch; })},
      {"frame chunk", frame([](Frame& f) { ++f.chunk; })},
      {"frame base", frame([](Frame& f) { ++f.base; })},
      {"task op", [](Plan& p) { ++p.tasks[3].op; }},
      {"task frame", [](Plan& p) { ++p.tasks[3].frame; }},
      {"task lane", [](Plan& p) { ++p.tasks[3].lane; }},
      {"task match", [](Plan& p) { p.tasks[3].match = 0; }},
      {"task flags", [](Plan& p) { p.tasks[3].flags ^= kJoinsPrevious; }},
      {"task dependencies", [](Plan& p) { ++p.tasks[3].first_dependency; }},
      {"dependency", [](Plan& p) { ++p.dependencies[0]; }},
      {"rank slot name", [](Plan& p) { p.classes[0].name += "x"; }},
      {"rank slot stage", [](Plan& p) { ++p.classes[0].stage; }},
      {"rank slot representative", [](Plan& p) { ++p.classes[0].representative; }},
      {"rank slot multiplicity", [](Plan& p) { ++p.classes[0].multiplicity; }},
      {"rank slot frame", [](Plan& p) { ++p.classes[0].frame; }},
      {"rank slot tasks", [](Plan& p) { --p.classes[0].end; }},
      {"match", [](Plan& p) { --p.matches[0].count; }},
      {"match member", [](Plan& p) { ++p.match_members[0]; }},
      {"group order", [](Plan& p) { std::swap(p.dimensions[0].groups[0][0], p.dimensions[0].groups[0][1]); }},
      {"group of a rank", [](Plan& p) { ++p.dimensions[0].member_of[0]; }},
      {"run-time size", [](Plan& p) { p.blocks[0].runtime_sizes.push_back({"tokens", 1, 2}); }},
      {"servers beside workers", [](Plan& p) { p.servers_beside ^= true; }},
      {"own pace of workers", [](Plan& p) { p.asynchronous_workers ^= true; }},
      {"one queue", [](Plan& p) { p.one_queue ^= true; }},
      {"overlap of steps", [](Plan& p) { p.steps_overlap ^= true; }},
      {"shards of the optimizer", [](Plan& p) { p.shards_optimizer ^= true; }},
      {"shards of gradients", [](Plan& p) { p.shards_gradients ^= true; }},
      {"steps", [](Plan& p) { ++p.steps; }},
      {"reported step", [](Plan& p) { ++p.reported; }},
      {"micro-batches of an update", [](Plan& p) { ++p.update_every; }},
      {"frame weights", frame([](Frame& f) { ++f.weights; })},
      {"rank slot versions", [](Plan& p) { ++p.classes[0].versions; }},
      {"rank slot staleness", [](Plan& p) { ++p.classes[0].staleness; }}};
  std::map<std::string, const char*> seen = {{plan_hash(plan), "nothing"}};
  for (const auto& [what, change] : changes) {
    Plan changed = plan;
    change(changed);
    const auto [it, fresh] = seen.try_emplace(plan_hash(changed), what);
    EXPECT_TRUE(fresh) << what << " hashes like " << it->second;
  }
}

// The hash changes with every field of every kind of work.
TEST(PlanHash, ChangesWithEveryShape) {
  Plan plan;
  plan.ops.resize(1);
  const auto hash = [&](const Work& work) {
    plan.ops[0].work = work;
    return plan_hash(plan);
  };
  const std::vector<std::vector<Work>> families = {
      {Gemm{}, Gemm{.m = 1}, Gemm{.n = 1}, Gemm{.k = 1}, Gemm{.batch = 2}, Gemm{.role = Gemm::Role::values},
       Gemm{.accumulate = true}, Gemm{.result_bytes = 4}},
      {FlashAttention{}, FlashAttention{.batch = 1}, FlashAttention{.heads = 1}, FlashAttention{.kv_heads = 1},
       FlashAttention{.query = 1}, FlashAttention{.key = 1}, FlashAttention{.head_dim = 1},
       FlashAttention{.value_dim = 1}, FlashAttention{.window = 1}, FlashAttention{.direction = Direction::backward},
       FlashAttention{.softcap = 1}, FlashAttention{.chosen = 1}, FlashAttention{.compressed = 1}},
      {Pool{}, Pool{.batch = 1}, Pool{.sequence = 1}, Pool{.columns = 1}, Pool{.rate = 2}, Pool{.overlaps = true},
       Pool{.direction = Direction::backward}},
      {MixStreams{}, MixStreams{.rows = 1}, MixStreams{.streams = 1}, MixStreams{.columns = 1},
       MixStreams{.iterations = 1}, MixStreams{.part = MixStreams::Part::mix},
       MixStreams{.direction = Direction::backward}},
      {Convolution{}, Convolution{.batch = 1}, Convolution{.sequence = 1}, Convolution{.columns = 1},
       Convolution{.projected = 1}, Convolution{.taps = 1}, Convolution{.direction = Direction::backward}},
      {Scan{}, Scan{.batch = 1}, Scan{.sequence = 1}, Scan{.heads = 1}, Scan{.groups = 1}, Scan{.key_dim = 1},
       Scan{.value_dim = 1}, Scan{.chunk = 1}, Scan{.first = 1}, Scan{.projected = 1},
       Scan{.rule = RecurrenceRule::state_space}, Scan{.direction = Direction::backward}},
      {GatedNorm{}, GatedNorm{.rows = 1}, GatedNorm{.columns = 1}, GatedNorm{.width = 1}, GatedNorm{.first = 1},
       GatedNorm{.projected = 1}, GatedNorm{.gates_first = true}, GatedNorm{.shared = false},
       GatedNorm{.direction = Direction::backward}},
      {IndexScores{}, IndexScores{.batch = 1}, IndexScores{.heads = 1}, IndexScores{.query = 1}, IndexScores{.key = 1},
       IndexScores{.head_dim = 1}, IndexScores{.top_k = 1}, IndexScores{.direction = Direction::backward}},
      {CrossEntropy{.rows = 1}, CrossEntropy{.weighted = true}},
      {Distillation{}, Distillation{.rows = 1}, Distillation{.columns = 1},
       Distillation{.part = Distillation::Part::loss}, Distillation{.temperature = 2}, Distillation{.divergence = 2},
       Distillation{.cross_entropy = 1}},
      {FeatureLoss{}, FeatureLoss{.rows = 1}, FeatureLoss{.columns = 1},
       FeatureLoss{.part = FeatureLoss::Part::gradient}, FeatureLoss{.weight = 2}},
      {Preference{}, Preference{.rows = 1}, Preference{.samples = 2}, Preference{.beta = 1}},
      {Update{}, Update{.elements = 1}, Update{.gradient = 2}, Update{.master = 2}, Update{.moment = 2},
       Update{.forward = 4}, Update{.moments = 0}, Update{.fused = false}, Update{.momentum = true}},
      {MoveDirections{}, MoveDirections{.elements = 1}, MoveDirections{.from = 2}, MoveDirections{.to = 4},
       MoveDirections{.first = 1}, MoveDirections{.back = true}},
      {Orthogonalize{}, Orthogonalize{.rows = 1}, Orthogonalize{.columns = 1}, Orthogonalize{.first = 1},
       Orthogonalize{.parameter = 1}},
      {Collective{}, Collective{.kind = CollectiveKind::all_gather}, Collective{.group = Dimension::tensor},
       Collective{.bytes = 1}, Collective{.width = 4}, Collective{.first = 1}, Collective{.algorithm = "ring"},
       Collective{.maximum = true}, Collective{.root = 1}, Collective{.tensors = 2}, Collective{.back = true}},
      {Transfer{}, Transfer{.send = false}, Transfer{.offset = 2}, Transfer{.bytes = 1}, Transfer{.parts = 2}},
      {Cast{},
       Cast{.elements = 1},
       Cast{.from = 4},
       Cast{.to = 2},
       Cast{.transpose = true},
       Cast{.own_kernel = true},
       Activation{.limit = 7},
       Clamp{},
       Clamp{.rows = 1},
       Clamp{.columns = 1},
       Clamp{.limit = 7},
       Clamp{.direction = Direction::backward},
       SoftCap{},
       SoftCap{.elements = 1},
       SoftCap{.cap = 1},
       SoftCap{.fused = false},
       SoftCap{.direction = Direction::backward},
       Accumulate{},
       Accumulate{.from = 4},
       Add{},
       Fill{},
       Multiply{},
       Multiply{.elements = 1},
       Multiply{.width = 2},
       Multiply{.factor = 0.5},
       Multiply{.check = true},
       Multiply{.first = 1},
       SquaredNorm{},
       SquaredNorm{.width = 2},
       SquaredNorm{.of = SquaredNorm::Of::lines},
       SquaredNorm{.of = SquaredNorm::Of::updates},
       BiasGradient{},
       Rotary{},
       Softmax{},
       Softmax{.window = 1},
       Normalize{},
       Normalize{.part = Normalize::Part::sums},
       Normalize{.pieces = 2},
       Activation{},
       Residual{},
       Residual{.side = {.columns = Dimension::tensor}},
       Residual{.side = {.rows = Dimension::tensor}},
       Load{},
       Load{.side = {.rows = Dimension::tensor}},
       Embedding{},
       Embedding{.over = Dimension::tensor_row},
       Embedding{.panel = 1},
       Embedding{.adds = true},
       CrossEntropy{},
       CrossEntropy{.over = Dimension::tensor_row}}};
  std::map<std::string, std::size_t> seen;
  std::size_t i = 0;
  for (const auto& family : families) {
    for (const Work& work : family) EXPECT_TRUE(seen.try_emplace(hash(work), i++).second) << i - 1;
  }
}

}  // namespace
}  // namespace orrery
