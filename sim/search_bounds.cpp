#include "sim/search_bounds.h"

#include <algorithm>
#include <numeric>

#include "models/blocks.h"
#include "models/schedules.h"
#include "models/sharding.h"
#include "sim/kernel_time.h"

namespace orrery {
namespace {

constexpr double kBytesOfMiB = 1048576.0;

// Layers first ... end - 1; the last one only to the end of its compute.
PassCost range(const std::vector<PassCost>& sums, std::int64_t first, std::int64_t end) {
  return {sums[end].through - sums[first].through, 0, sums[end].issue - sums[first].issue,
          sums[end].compute - sums[first].compute};
}

}  // namespace

Bounds::Bounds(const Space& space, const Profile& profile, StackCosts& costs)
    : space_(space), profile_(profile), costs_(costs) {}

Sharding Bounds::like(Sharding sharding) const {
  const ShardingRow& row = row_of(sharding);
  if (row.hybrid || row.kind == Sharding::fsdp_grad_op) return Sharding::fsdp;
  return unit_gradients(space_.base(), row) || row.shards_parameters ? row.kind : Sharding::none;
}

const StackCost* Bounds::stack(std::string_view recompute, Sharding sharding, bool splits) {
  const StackCost*& found = stacks_[{recompute, sharding, splits}];
  if (found != nullptr) return found;
  const Degrees& l = layout_;
  StackKey key{.tensor = l.tensor,
               .context = l.context,
               .expert = l.expert,
               .expert_tensor = l.expert_tensor,
               .micro_batch = l.micro_batch,
               .data = sharding == Sharding::none || l.data == 1 ? 1 : 2,
               .sequence = own_tokens_,
               .context_kind = std::string(l.context_kind),
               .recompute = std::string(recompute),
               .sharding = sharding,
               .sequence_parallel = l.sequence_parallel,
               .overlap_tensor = l.overlap_tensor,
               .overlap_expert = l.overlap_expert,
               .splits_backward = splits};
  if (space_.base().model.moe) {
    const std::int64_t inner = l.tensor * l.context, experts = l.expert * l.expert_tensor;
    const std::int64_t least = experts / std::gcd(experts, inner);
    key.data = std::max(key.data, least);
    while (key.data > 1 && inner * key.data % experts != 0) ++key.data;
  }
  found = &costs_.of(key);
  return found;
}

const Bounds::Cut& Bounds::cut(std::int64_t pipeline, std::int64_t virtual_stages) {
  const auto [it, fresh] = cuts_.try_emplace({pipeline, virtual_stages});
  if (!fresh) return it->second;
  it->second.layers = space_.cut(pipeline, virtual_stages);
  if (it->second.layers.empty()) return it->second;
  it->second.first.assign(it->second.layers.size(), 0);
  std::partial_sum(it->second.layers.begin(), it->second.layers.end() - 1, it->second.first.begin() + 1);
  return it->second;
}

void Bounds::enter(const Degrees& layout) {
  layout_ = layout;
  stacks_.clear();
}

// What all blocks take in a micro-batch.
static Picoseconds work_of(const StackCost& cost) {
  Picoseconds all = 0;
  for (const BlockCost* block : {&cost.embedding, &cost.head})
    all += block->forward.busy + block->backward.busy + block->weight.busy;
  for (const BlockCost& layer : cost.layers) all += layer.forward.busy + layer.backward.busy + layer.weight.busy;
  return all;
}

// The mean over stages of what nothing but more work can raise: recomputation only adds, and a pipeline has its first
// micro-batch's way to the last stage and back before it, or the mean is larger. 0: not possible.
Bound Bounds::of(const Degrees& layout) {
  enter(layout);
  std::optional<Picoseconds> least;
  for (const Sharding sharding : {Sharding::none, Sharding::zero2, Sharding::zero3, Sharding::fsdp}) {
    for (const bool splits : {false, true}) {
      const bool units = sharding != Sharding::none;
      if ((splits && (units || layout.pipeline == 1)) || like(sharding) != sharding) continue;
      const StackCost& cost = *stack("none", sharding, splits);
      if (!cost.possible) continue;
      const Picoseconds time = work_of(cost) / layout.pipeline * layout.micro_batches;
      least = std::min(least.value_or(time), time);
    }
  }
  return {.time = least.value_or(0)};
}

bool Bounds::has_rough(const Degrees& l) const {
  constexpr std::int64_t kLong = 4;
  return l.context >= kLong && !space_.base().model.moe;
}

Bound Bounds::rough(const Degrees& layout) {
  Degrees own = layout;
  own.context = 1;
  own.context_kind = "ring";
  own.data = layout.replicas();
  own_tokens_ = space_.base().sequence / layout.context;
  const Bound bound = of(own);
  own_tokens_ = 0;
  return bound;
}

bool Bounds::possible(const Recipe& cell) {
  if (cut(layout_.pipeline, cell.virtual_stages).layers.empty()) return false;
  const bool splits = find_schedule(cell.schedule).splits;
  return stack("none", like(cell.sharding), splits)->possible &&
         stack(cell.recompute, like(cell.sharding), splits)->possible;
}

// A stage's chunk: its first layers are recomputed as long as `left` allows.
void Bounds::add_chunk(Stage& stage, std::int64_t k, std::int64_t& left) {
  const Cut& c = cut(layout_.pipeline, cell_.virtual_stages);
  const std::int64_t first = c.first[k], n = c.layers[k], end = first + n;
  const bool last_stage = k + 1 == static_cast<std::int64_t>(c.layers.size());
  const std::int64_t again = std::min(left, n), middle = first + again;
  left -= again;
  const auto last = [&](auto member) {
    return n == 0 ? PassCost{} : (again == n ? again_ : plain_)->layers[end - 1].*member;
  };
  PassCost forward, backward, weight;
  const auto pass = [&](PassCost& cost, auto sums, auto member) {
    cost += range(again_->sums.*sums, first, middle);
    cost += range(plain_->sums.*sums, middle, end);
    cost.busy = cost.through;
    if (k == 0) cost += plain_->embedding.*member;
    if (last_stage) cost += plain_->head.*member;
  };
  pass(forward, &LayerSums::forward, &BlockCost::forward);
  pass(backward, &LayerSums::backward, &BlockCost::backward);
  pass(weight, &LayerSums::weight, &BlockCost::weight);
  // The block that ends a pass is followed by no compute of its own micro-batch.
  if (n > 0) {
    if (!last_stage) forward.busy -= last(&BlockCost::forward).through - last(&BlockCost::forward).busy;
    const BlockCost& low = (again > 0 ? again_ : plain_)->layers[first];
    if (k > 0) {
      backward.busy -= low.backward.through - low.backward.busy;
      weight.busy -= low.weight.through - low.weight.busy;
    }
  }
  const bool first_chunk = stage.layers == 0 && stage.elements == 0;
  const PassCost before[] = {stage.forward, stage.backward, stage.weight};
  stage.forward += forward;
  stage.backward += backward;
  stage.weight += weight;
  if (!first_chunk) {
    stage.forward.through = before[0].through;
    stage.backward.through = before[1].through;
    stage.weight.through = before[2].through;
  }
  stage.last_forward = last(&BlockCost::forward).busy;
  Bytes kept =
      again_->sums.kept[middle] - again_->sums.kept[first] + plain_->sums.kept[end] - plain_->sums.kept[middle];
  if (k == 0) kept += plain_->embedding.kept;
  if (last_stage) kept += plain_->head.kept;
  chunk_kept_.push_back(kept);
  const std::int64_t elements_before = stage.elements;
  // Whether or not that layer runs again, so that running more again never raises the bound.
  stage.extra = last_stage ? plain_->head.backward_extra
                : n > 0    ? std::min(again_->layers[end - 1].backward_extra, plain_->layers[end - 1].backward_extra)
                           : 0;
  const LayerSums& sums = plain_->sums;
  stage.elements += sums.elements[end] - sums.elements[first];
  stage.expert_elements += sums.expert_elements[end] - sums.expert_elements[first];
  stage.eight_bit_elements += sums.eight_bit_elements[end] - sums.eight_bit_elements[first];
  const bool tied = space_.base().model.tied_embeddings && layout_.pipeline == 1;
  if (k == 0) stage.elements += plain_->embedding.elements;
  if (last_stage) {
    // In the small plan one stage holds both ends, and a tied output's matrix belongs to the embedding.
    stage.elements += plain_->head.elements;
    if (tied) stage.elements -= std::min(plain_->head.elements, plain_->embedding.elements);
    stage.expert_elements += plain_->head.expert_elements;
  }
  if (first_chunk) stage.first_elements = stage.elements;
  stage.layer_elements += sums.elements[end] - sums.elements[first];
  chunk_elements_.push_back(stage.elements - elements_before);
  stage.layers += n;
}

std::int64_t Bounds::own(const Stage& stage) const {
  const ShardingRow& row = row_of(cell_.sharding);
  if (!row.shards_optimizer) return stage.elements + stage.expert_elements;
  const std::int64_t group = row.hybrid ? cell_.shard_group : layout_.replicas();
  const std::int64_t copies =
      std::max<std::int64_t>(1, layout_.tensor * group / (layout_.expert * layout_.expert_tensor));
  return ceil_div(stage.elements, group) + ceil_div(stage.expert_elements, copies);
}

// Norm, clipping, update and clearing of what one rank owns.
Picoseconds Bounds::update_time(std::int64_t elements) {
  if (space_.base().strategy.offload.any()) return 0;  // the host may do it
  const auto [it, fresh] = updates_.try_emplace(elements);
  if (!fresh) return it->second;
  const Spec& spec = space_.base();
  const Strategy& s = spec.strategy;
  const Bytes width = storage_bytes(s.precision), gradient = storage_bytes(s.gradient_precision);
  const auto time = [&](const Work& work) {
    const Op op{.name = "", .work = work, .phase = Phase::step, .precision = s.precision};
    return picoseconds(kernel_time(op, width, spec.cluster.gpu, profile_, spec.software.attention_kernel));
  };
  Picoseconds sum = 0;
  if (s.clip > 0) sum += time(SquaredNorm{elements, gradient});
  if (s.clip > 0 && !spec.software.fused_clip) sum += time(Multiply{elements, gradient});
  const bool sgd = s.optimizer.kind == OptimizerKind::sgd;
  const bool master = width < s.optimizer.master_bytes;
  sum += time(Update{elements, gradient, master ? s.optimizer.master_bytes : 0, s.optimizer.moment_bytes, 0,
                     sgd ? 0 : 2, spec.software.fused_optimizer});
  return it->second = sum;
}

void Bounds::add_up() {
  const std::int64_t p = layout_.pipeline, v = cell_.virtual_stages;
  stages_.assign(p, {});
  chunk_kept_.clear();
  chunk_elements_.clear();
  const std::int64_t most = cell_.recompute_layers < 0 ? space_.base().model.layers : cell_.recompute_layers;
  Picoseconds head = 0, tail = 0;
  for (std::int64_t s = 0; s < p; ++s) {
    Stage& stage = stages_[s];
    std::int64_t left = cell_.recompute == "none" ? 0 : most;
    for (std::int64_t c = 0; c < v; ++c) add_chunk(stage, c * p + s, left);
    stage.head = head;
    stage.tail = tail;
    head += stage.forward.through;
    tail += stage.backward.through;
    stage.update = update_time(own(stage));
  }
}

Bound Bounds::of(const Recipe& cell) {
  cell_ = cell;
  splits_ = find_schedule(cell.schedule).splits;
  units_ = unit_gradients(space_.base(), row_of(cell.sharding));
  plain_ = stack("none", like(cell.sharding), splits_);
  // What a layer keeps on the host it need not compute again.
  const bool plain = cell.recompute == "none" || space_.base().strategy.offload.activations != Device::none;
  again_ = plain ? plain_ : stack(cell.recompute, like(cell.sharding), splits_);
  add_up();
  least_update_ = stages_.front().update;
  for (const Stage& s : stages_) least_update_ = std::min(least_update_, s.update);
  const std::int64_t m = layout_.micro_batches;
  Bound bound;
  for (const Stage& s : stages_) {
    const Picoseconds input = m * (s.forward.busy + s.backward.busy), work = input + m * s.weight.busy;
    const Picoseconds end = splits_ ? std::max(work, input + s.tail) : work + s.tail;
    bound.time =
        std::max({bound.time, s.head + end + least_update_, m * (s.forward.issue + s.backward.issue + s.weight.issue)});
  }
  bound.memory = memory_ = memory();
  return bound;
}

bool Bounds::frees_memory() const {
  for (std::size_t i = 0; i < plain_->layers.size(); ++i) {
    if (again_->layers[i].kept > plain_->layers[i].kept) return false;
  }
  return true;
}

// Every layer that runs again takes longer in every way, but the last of a chunk may reach further under its neighbour.
std::optional<Picoseconds> Bounds::may_fall() const {
  Picoseconds fall = 0;
  for (const auto pass : {&BlockCost::forward, &BlockCost::backward, &BlockCost::weight}) {
    Picoseconds most = 0;
    for (std::size_t i = 0; i < plain_->layers.size(); ++i) {
      const PassCost &a = plain_->layers[i].*pass, &b = again_->layers[i].*pass;
      if (b.through < a.through || b.busy < a.busy || b.issue < a.issue || b.compute < a.compute) return std::nullopt;
      most = std::max(most, (b.through - b.busy) - (a.through - a.busy));
    }
    fall += most;
  }
  return fall * layout_.micro_batches * cell_.virtual_stages;
}

// Forwards of a stage that are issued before its first backward.
std::int64_t Bounds::forwards_first(std::int64_t s) const {
  const std::int64_t p = layout_.pipeline, m = layout_.micro_batches, v = cell_.virtual_stages;
  const auto at_most = [&](std::int64_t n) { return std::min(m, std::max<std::int64_t>(1, n)); };
  if (p == 1 || cell_.schedule == "naive") return 1;
  if (cell_.schedule == "gpipe") return m;
  if (cell_.schedule == "1f1b" || cell_.schedule == "dapple" || cell_.schedule == "zb-h1") return at_most(p - s);
  if (cell_.schedule == "zb-h2") return at_most(2 * (p - s) - 1);
  if (cell_.schedule != "interleaved" || m % p != 0) return 1;
  return std::min(m * v, 2 * (p - s - 1) + (v - 1) * p + 1);
}

// Of those forwards, one chunk's: they go through the chunks in rounds of p.
std::int64_t Bounds::forwards_of_chunk(std::int64_t forwards, std::int64_t chunk) const {
  const std::int64_t p = layout_.pipeline, v = cell_.virtual_stages;
  if (v == 1) return forwards;
  return forwards / (p * v) * p + std::clamp<std::int64_t>(forwards % (p * v) - chunk * p, 0, p);
}

// Bytes that forwards issued before the first backward keep.
Bytes Bounds::in_flight(std::int64_t s) const {
  const std::int64_t v = cell_.virtual_stages, forwards = forwards_first(s);
  Bytes sum = 0;
  for (std::int64_t c = 0; c < v; ++c) sum += forwards_of_chunk(forwards, c) * chunk_kept_[s * v + c];
  return sum;
}

// Bytes of weights that their chunks' forwards have left gathered then.
Bytes Bounds::gathered(std::int64_t s) const {
  const ShardingRow& row = row_of(cell_.sharding);
  if (!row.shards_parameters || row.reshards_after_forward) return 0;
  const std::int64_t v = cell_.virtual_stages, forwards = forwards_first(s);
  std::int64_t elements = 0;
  for (std::int64_t c = 0; c < v; ++c) elements += forwards_of_chunk(forwards, c) > 0 ? chunk_elements_[s * v + c] : 0;
  return elements * storage_bytes(space_.base().strategy.precision);
}

Bytes Bounds::state_bytes(const Stage& stage) const {
  const Spec& spec = space_.base();
  const ShardingRow& row = row_of(cell_.sharding);
  const Optimizer& o = spec.strategy.optimizer;
  const Bytes width = storage_bytes(spec.strategy.precision);
  const Bytes gradient = storage_bytes(spec.strategy.gradient_precision);
  const std::int64_t whole = stage.elements + stage.expert_elements, mine = own(stage);
  Bytes sum = row.shards_parameters ? mine * (row.fp32_shards ? o.master_bytes : width) : whole * width;
  sum += units_ ? mine * gradient : whole * gradient;
  if (width < o.master_bytes && !row.fp32_shards) sum += mine * o.master_bytes;
  if (o.kind != OptimizerKind::sgd) sum += 2 * mine * o.moment_bytes;
  if (!row.shards_parameters) sum += 2 * stage.eight_bit_elements;
  return sum;
}

Bytes Bounds::memory() const {
  const Spec& spec = space_.base();
  if (spec.strategy.offload.any()) return 0;  // what lies elsewhere is not told apart yet
  const bool cpu = spec.cluster.gpu.memory_bytes == 0;
  const double buffers = row_of(cell_.sharding).shards_optimizer ? spec.software.buffers_MiB : 0;
  const auto fixed =
      cpu ? 0 : static_cast<Bytes>((spec.software.context_MiB + spec.software.workspace_MiB + buffers) * kBytesOfMiB);
  Bytes most = 0;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const Bytes extra = splits_ ? 0 : stages_[s].extra;
    const auto at = static_cast<std::int64_t>(s);
    most = std::max(most, state_bytes(stages_[s]) + in_flight(at) + gathered(at) + extra);
  }
  return most + fixed;
}

}  // namespace orrery
