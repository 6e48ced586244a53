#include "sim/search/bounds.h"

#include <algorithm>
#include <numeric>

#include "models/cost/kernel_time.h"
#include "models/layers/blocks.h"
#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"

namespace orrery {
namespace {

// The difference of two sums over layers: the cost of layers first ... end - 1, without `busy`.
PassCost range(const std::vector<PassCost>& sums, std::int64_t first, std::int64_t end) {
  return {sums[end].through - sums[first].through, 0,
          sums[end].issue - sums[first].issue,     sums[end].compute - sums[first].compute,
          sums[end].beside - sums[first].beside,   sums[end].hides - sums[first].hides,
          sums[end].late - sums[first].late};
}

}  // namespace

Bounds::Bounds(const Space& space, const Profile& profile, StackCosts& costs)
    : space_(space), profile_(profile), costs_(costs) {}

const StackCost* Bounds::stack(std::string_view recompute, Kind kind, bool splits, bool leaves) {
  const StackCost*& found = stacks_[{recompute, kind, splits, leaves}];
  if (found != nullptr) return found;
  const Degrees& l = layout_;
  StackKey key{.tensor = l.tensor,
               .context = l.context,
               .expert = l.expert,
               .expert_tensor = l.expert_tensor,
               .micro_batch = l.micro_batch,
               .data = kind.sharding == Sharding::none || l.data == 1 ? 1 : 2,
               .sequence = own_tokens_,
               .context_kind = std::string(l.context_kind),
               .recompute = std::string(recompute),
               .sharding = kind.sharding,
               .sequence_parallel = l.sequence_parallel,
               .overlap_tensor = l.overlap_tensor,
               .overlap_expert = l.overlap_expert,
               .splits_backward = splits,
               .host_gradients = kind.host_gradients,
               .leaves = leaves};
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
  communicator_bytes_.clear();
  sends_ = {};
  tensor_channels_.reset();
  known_.reset();
  groups_known_.clear();
}

// The time of all blocks in one micro-batch; where actions are woven, at least the time of the kernels.
static Picoseconds work_of(const StackCost& cost, bool woven) {
  Picoseconds all = 0;
  const auto add = [&](const BlockCost& block) {
    for (const PassCost* pass : {&block.forward, &block.backward, &block.weight})
      all += woven ? pass->compute : pass->busy;
  };
  add(cost.embedding);
  add(cost.head);
  for (const BlockCost& layer : cost.layers) add(layer);
  return all;
}

// A lower bound of the layers that lie before the first virtual stage of each stage, summed over stages, for any number
// of chunks in a stage. two: a stage may also begin with the place of the stage that mirrors it.
std::int64_t Bounds::layers_ahead(std::int64_t pipeline, bool two) {
  const auto [it, fresh] = ahead_.try_emplace({pipeline, two}, 0);
  if (!fresh) return it->second;
  std::optional<std::int64_t> least;
  for (std::int64_t v = 1; v * pipeline <= space_.base().model.layers + 2; ++v) {
    const Cut& c = cut(pipeline, v);
    if (c.layers.empty()) continue;
    std::int64_t sum = 0;
    for (std::int64_t s = 0; s < pipeline; ++s) sum += c.first[two ? std::min(s, pipeline - 1 - s) : s];
    least = std::min(least.value_or(sum), sum);
  }
  return it->second = least.value_or(0);
}

// The mean over stages of the work without recomputation, which only adds to it, and of the idle time before a stage
// begins (a micro-batch comes through the layers before) and at the end (a gradient goes back). 0: no cell is possible.
Bound Bounds::of(const Degrees& layout) {
  enter(layout);
  std::optional<Picoseconds> least;
  for (const Kind kind : kinds()) {
    for (const bool splits : {false, true}) {
      if (splits && (layout.pipeline == 1 || !space_.splits())) continue;
      const StackCost& cost = *stack("none", kind, splits);
      if (!cost.possible) continue;
      const auto way_of = [&](const BlockCost& layer) {
        return layer.forward.to_result() + (splits ? 0 : layer.backward.to_result() - layer.early);
      };
      Picoseconds way = way_of(cost.layers.front());
      for (const BlockCost& layer : cost.layers) way = std::min(way, way_of(layer));
      const Picoseconds idle = way * layers_ahead(layout.pipeline, splits || kind == Kind{}) / layout.pipeline;
      const Picoseconds time = work_of(cost, splits) / layout.pipeline * layout.micro_batches + idle;
      least = std::min(least.value_or(time), time);
    }
  }
  return {.time = least.value_or(0)};
}

bool Bounds::has_rough(const Degrees& l) const {
  return !space_.base().model.moe && own_tokens_of(l) < space_.base().sequence;
}

// A rank's tokens, halved as often as the tensor ranks can still cut them, down to 256.
std::int64_t Bounds::own_tokens_of(const Degrees& l) const {
  constexpr std::int64_t kShort = 256;
  std::int64_t own = space_.base().sequence / l.context;
  while (own % 2 == 0 && own / 2 >= kShort && own / 2 % l.tensor == 0) own /= 2;
  return own;
}

Bound Bounds::rough(const Degrees& layout) {
  Degrees own = layout;
  own.context = 1;
  own.context_kind = "ring";
  own.data = layout.replicas();
  own_tokens_ = own_tokens_of(layout);
  own.micro_batch = layout.micro_batch * (space_.base().sequence / layout.context / own_tokens_);
  const Bound bound = of(own);
  own_tokens_ = 0;
  return bound;
}

bool Bounds::possible(const Recipe& cell) {
  if (cut(layout_.pipeline, cell.virtual_stages).layers.empty()) return false;
  const bool splits = find_schedule(cell.schedule).splits;
  return stack("none", like(cell), splits)->possible && stack(cell.recompute, like(cell), splits)->possible;
}

void Bounds::place() {
  const ScheduleRow& row = find_schedule(cell_.schedule);
  const std::int64_t p = layout_.pipeline, v = cell_.virtual_stages;
  const bool same = placed_.placement == row.placement && placed_.pipeline == p && placed_.virtual_stages == v;
  if (!same) {
    placed_ = {row.placement, p, v, place_chunks(row.placement, {.stages = p, .chunks = v}, row.copies), {}};
    placed_.of_stage.resize(p);
    for (std::size_t k = 0; k < placed_.where.stage_of.size(); ++k)
      placed_.of_stage[placed_.where.stage_of[k]].push_back(static_cast<std::int64_t>(k));
  }
  copies_ = placed_.where.copies;
  woven_ = row.weaving == Weaving::always;
  micro_batches_ = layout_.micro_batches / copies_;
  // The order is played where no closed form tells which micro-batches are alive.
  const bool closed = row.placement == ChunkPlacement::in_turn && in_usual_turns();
  order_ = closed || p == 1 || needs_times(cell_.schedule) ? nullptr : orders_.of(cell_.schedule, shape());
}

// Adds virtual stage k to a stage; `counts`: layers of the stage still to run again, and to lose their activations.
void Bounds::add_chunk(Stage& stage, std::int64_t k, Counts& counts) {
  const Cut& c = *cut_;
  const std::int64_t place = k % std::ssize(c.layers), first = c.first[place], n = c.layers[place], end = first + n;
  const bool first_place = place == 0, last_place = place + 1 == std::ssize(c.layers);
  const std::int64_t again = std::min(counts.again, n), away = std::min(counts.away, n), middle = first + again;
  counts.again -= again;
  counts.away -= away;
  VirtualStage& costs = virtual_stages_[k];
  const auto pass = [&](PassCost& cost, auto sums, auto member) {
    cost = range(again_->sums.*sums, first, middle);
    cost += range(plain_->sums.*sums, middle, end);
    cost.busy = cost.through;
    if (first_place) cost += plain_->embedding.*member;
    if (last_place) cost += again_->head.*member;
  };
  pass(costs.forward, &LayerSums::forward, &BlockCost::forward);
  pass(costs.backward, &LayerSums::backward, &BlockCost::backward);
  pass(costs.weight, &LayerSums::weight, &BlockCost::weight);
  costs.early = 0;
  // The block that ends a pass is followed by no compute of its own micro-batch.
  stage.last_forward = 0;
  if (n > 0) {
    const BlockCost &high = (again == n ? again_ : plain_)->layers[end - 1],
                    &low = (again > 0 ? again_ : plain_)->layers[first];
    if (!last_place) costs.forward.busy -= high.forward.through - high.forward.busy;
    if (!first_place) {
      costs.backward.busy -= low.backward.through - low.backward.busy;
      costs.weight.busy -= low.weight.through - low.weight.busy;
    }
    stage.last_forward = woven_ ? 0 : high.forward.busy;
    costs.early = last_place ? again_->head.early : high.early;
  }
  const bool first_chunk = stage.first_place < 0;
  const PassCost before[] = {stage.forward, stage.backward, stage.weight};
  // One of two woven actions may compute while the other waits for transfers, so that only kernels count.
  const auto least = [&](PassCost cost) {
    if (woven_) cost.busy = cost.compute;
    return cost;
  };
  stage.forward += least(costs.forward);
  stage.backward += least(costs.backward);
  stage.weight += least(costs.weight);
  if (!first_chunk) {
    stage.forward.through = before[0].through;
    stage.backward.through = before[1].through;
    stage.weight.through = before[2].through;
  } else {
    stage.first_place = place;
  }
  add_memory(stage, place, again, away);
  add_weights(stage, place);
  if (first_chunk) stage.first_elements = stage.elements;
}

void Bounds::add_weights(Stage& stage, std::int64_t place) {
  const Cut& c = *cut_;
  const LayerSums& sums = plain_->sums;
  const std::int64_t first = c.first[place], n = c.layers[place], end = first + n, before = stage.elements;
  stage.elements += sums.elements[end] - sums.elements[first];
  stage.expert_elements += sums.expert_elements[end] - sums.expert_elements[first];
  stage.eight_bit_elements += sums.eight_bit_elements[end] - sums.eight_bit_elements[first];
  // In the small plan one stage holds both ends, and a tied output's matrix belongs to the embedding.
  const bool meet = layout_.pipeline == 1 || placed_.placement != ChunkPlacement::in_turn;
  if (place == 0) stage.elements += plain_->embedding.elements;
  if (place + 1 == std::ssize(c.layers)) {
    stage.elements += again_->head.elements;
    if (space_.base().model.tied_embeddings && meet)
      stage.elements -= std::min(again_->head.elements, plain_->embedding.elements);
    stage.expert_elements += again_->head.expert_elements;
  }
  stage.layer_elements += sums.elements[end] - sums.elements[first];
  stage.layers += n;
  stage.last_layers = n;
  chunk_elements_.push_back(stage.elements - before);
}

std::int64_t Bounds::own(const Stage& stage) const {
  const ShardingRow& row = row_of(cell_.sharding);
  if (!row.shards_optimizer) return stage.elements + stage.expert_elements;
  const std::int64_t group = row.hybrid ? cell_.shard_group : layout_.replicas();
  const std::int64_t expert_copies =
      copies_ * std::max<std::int64_t>(1, layout_.tensor * group / (layout_.expert * layout_.expert_tensor));
  return ceil_div(stage.elements, group * copies_) + ceil_div(stage.expert_elements, expert_copies);
}

// Time of norm, clipping and update of the parameters that one rank owns.
Picoseconds Bounds::update_time(std::int64_t elements) {
  const auto [it, fresh] = updates_.try_emplace(elements);
  if (!fresh) return it->second;
  const Spec& spec = space_.base();
  const Strategy& s = spec.strategy;
  const Bytes width = storage_bytes(s.precision), gradient = storage_bytes(s.gradient_precision);
  const auto time = [&](const Work& work) {
    const Op op{.name = "", .work = work, .phase = Phase::step, .precision = s.precision};
    return picoseconds(kernel_time(op, width, spec.cluster.gpu, profile_, ""));  // no op of an update is attention
  };
  const bool sgd = s.optimizer.kind == OptimizerKind::sgd;
  const bool master = width < s.optimizer.master_bytes;
  const Update update = {elements, gradient,    master ? s.optimizer.master_bytes : 0, s.optimizer.moment_bytes,
                         0,        sgd ? 0 : 2, spec.software.kernels.fused_optimizer};
  Picoseconds sum = 0;
  if (s.clip > 0) sum += time(SquaredNorm{elements, gradient});
  if (s.clip > 0 && !spec.software.kernels.fused_clip) sum += time(Multiply{elements, gradient});
  sum += time(update);
  return it->second = sum;
}

void Bounds::add_up() {
  const std::int64_t p = layout_.pipeline;
  stages_.assign(p, {.first_place = -1});
  virtual_stages_.resize(placed_.where.stage_of.size());
  chunks_ = cell_.virtual_stages * copies_;
  chunk_kept_.clear();
  chunk_left_.clear();
  chunk_elements_.clear();
  const std::int64_t all = space_.base().model.layers;
  const std::int64_t most = cell_.recompute == "none" ? 0 : cell_.recompute_layers < 0 ? all : cell_.recompute_layers;
  const std::int64_t away = cell_.activations == "none"    ? 0
                            : cell_.activation_layers <= 0 ? all
                                                           : cell_.activation_layers;
  for (std::int64_t s = 0; s < p; ++s) {
    Counts left{most, away};
    for (const std::int64_t k : placed_.of_stage[s]) {
      if (copies_ > 1) left = {most, away};
      add_chunk(stages_[s], k, left);
    }
  }
  const bool host = cell_.offload != "none";
  const Picoseconds on_host = host ? host_load(fewest_elements()).update : 0;
  for (Stage& stage : stages_) stage.update = host ? on_host : update_time(own(stage));
  // Among the chunks of a stage, the one that lies first in the model has the fewest layers before it.
  std::vector<Picoseconds> ahead(p + 1, 0), behind(p + 1, 0);
  for (std::int64_t k = 0; k < p; ++k) {
    ahead[k + 1] = ahead[k] + virtual_stages_[k].forward.to_result();
    behind[k + 1] = behind[k] + virtual_stages_[k].way_back();
  }
  for (std::int64_t s = 0; s < p; ++s) {
    std::int64_t first = stages_[s].first_place;
    for (const std::int64_t k : placed_.of_stage[s]) first = std::min(first, k % (p * cell_.virtual_stages));
    stages_[s].head = ahead[first];
    const Picoseconds late = virtual_stages_[first].backward.late;  // runs beside the way back
    stages_[s].tail = std::max<Picoseconds>(0, behind[first] - late);
    stages_[s].first_place = first;
  }
}

Bound Bounds::of(const Recipe& cell) {
  if (known_ && cell == cell_) return *known_;
  cell_ = cell;
  cut_ = &cut(layout_.pipeline, cell.virtual_stages);
  splits_ = find_schedule(cell.schedule).splits;
  units_ = reduces_units(cell);
  const bool leaves = cell.activations != "none";
  plain_ = stack("none", like(cell), splits_, leaves);
  again_ = cell.recompute == "none" ? plain_ : stack(cell.recompute, like(cell), splits_, leaves);
  place();
  add_up();
  least_update_ = stages_.front().update;
  for (const Stage& s : stages_) least_update_ = std::min(least_update_, s.update);
  const std::int64_t m = micro_batches_;
  Bound bound;
  for (const Stage& s : stages_) {
    const Picoseconds input = m * (s.forward.busy + s.backward.busy), work = input + m * s.weight.busy;
    const Picoseconds end = splits_ ? std::max(work, input + s.tail) : work + s.tail;
    bound.time =
        std::max({bound.time, s.head + end + least_update_, m * (s.forward.issue + s.backward.issue + s.weight.issue)});
  }
  on_device_ = bound.time;
  beside_ = through_host(host_load(fewest_elements()));
  bound.time = std::max(bound.time, beside_);
  bound.memory = memory_ = memory();
  known_ = bound;
  return bound;
}

// Shardings under which blocks cost the same differ only in the update, which is left out here unless the host does it.
Picoseconds Bounds::time_of_group(const Recipe& group) {
  const auto [it, fresh] = groups_known_.try_emplace({group.schedule, group.virtual_stages, like(group)});
  if (fresh) {
    Recipe one = group;
    if (!like(group).host_gradients) one.offload = "none";
    of(one);
    it->second = {on_device_ - least_update_, fewest_elements()};
  }
  const GroupTime& known = it->second;
  if (group.offload == "none") return known.time;
  cell_ = group;
  known_.reset();
  copies_ = model_copies(group.schedule);
  micro_batches_ = layout_.micro_batches / copies_;
  const HostLoad load = host_load(known.least);
  return std::max(known.time + load.update, load.beside);
}

bool Bounds::frees_memory() const {
  for (std::size_t i = 0; i < plain_->layers.size(); ++i) {
    if (again_->layers[i].kept > plain_->layers[i].kept) return false;
  }
  return true;
}

// A layer that runs again takes longer in every respect; only the last of a chunk may overlap more with the next.
std::optional<Picoseconds> Bounds::may_fall() const {
  Picoseconds fall = 0;
  const auto way_back = [](const BlockCost& layer) { return layer.backward.to_result() - layer.early; };
  for (std::size_t i = 0; i < plain_->layers.size(); ++i) {
    if (way_back(again_->layers[i]) < way_back(plain_->layers[i])) return std::nullopt;
  }
  for (const auto pass : {&BlockCost::forward, &BlockCost::backward, &BlockCost::weight}) {
    Picoseconds most = 0;
    for (std::size_t i = 0; i < plain_->layers.size(); ++i) {
      const PassCost &a = plain_->layers[i].*pass, &b = again_->layers[i].*pass;
      if (b.to_result() < a.to_result() || b.through < a.through || b.busy < a.busy || b.issue < a.issue ||
          b.compute < a.compute || b.busy - b.hides < a.busy - a.hides || b.through - b.hides < a.through - a.hides)
        return std::nullopt;
      most = std::max(most, (b.through - b.busy) - (a.through - a.busy));
    }
    fall += most;
  }
  return fall * layout_.micro_batches * cell_.virtual_stages;
}

}  // namespace orrery
