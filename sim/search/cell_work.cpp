#include "sim/search/cell_work.h"

#include <algorithm>

#include "models/schedule/schedules.h"

namespace orrery {
namespace {

// Counters used while the chunks of a stage are added up: how many more of the stage's layers are to count as
// recomputed in backward (again), and how many more as having their activations offloaded (away).
struct LayersLeft {
  std::int64_t again = 0, away = 0;
};

// A chunk (virtual stage) whose cost is being added to that of its stage. It has the layers `first` to end - 1, of
// which those before `middle` are recomputed in backward. place: index of the virtual stage within one copy of the
// model; away: number of the chunk's layers whose activations are offloaded.
struct AddedChunk {
  std::int64_t place = 0, first = 0, middle = 0, end = 0, away = 0;
  bool is_first = false, is_last = false;
};

// The cost of layers first to end - 1, as the difference of two prefix sums over layers. The field `busy` stays 0.
PassCost range(const std::vector<PassCost>& sums, std::int64_t first, std::int64_t end) {
  return {sums[end].through - sums[first].through, 0,
          sums[end].issue - sums[first].issue,     sums[end].compute - sums[first].compute,
          sums[end].beside - sums[first].beside,   sums[end].free_overlap - sums[first].free_overlap,
          sums[end].late - sums[first].late};
}

AddedChunk take_chunk(const CellWork& work, std::int64_t k, LayersLeft& left) {
  const ModelCut& cut = *work.cut;
  const std::int64_t places = std::ssize(cut.layers), place = k % places, n = cut.layers[place];
  const std::int64_t first = cut.first[place], again = std::min(left.again, n), away = std::min(left.away, n);
  left.again -= again;
  left.away -= away;
  return {place, first, first + again, first + n, away, place == 0, place + 1 == places};
}

// The forward of a virtual stage's blocks of the frozen model beside the one that trains. What comes behind the last of
// these blocks does not wait for their transfers.
PassCost second_forward(const CellWork& work, const AddedChunk& c) {
  if (work.second_cut == nullptr) return {};
  const ModelCost& second = *work.plain->second;
  const std::int64_t first = work.second_cut->first[c.place], end = first + work.second_cut->layers[c.place];
  PassCost cost = range(second.sums.forward, first, end);
  if (end > first) cost.through -= second.layers[end - 1].forward.through - second.layers[end - 1].forward.busy;
  cost.busy = cost.through;
  const auto add = [&](PassCost more) {
    more.through = more.busy;
    cost += more;
  };
  if (c.is_first) add(second.embedding.forward);
  if (c.is_last) add(second.head.forward);
  return cost;
}

// The costs of a virtual stage. last_forward: gets the compute time of the forward of the virtual stage's last layer; 0
// where passes overlap op by op.
VirtualStage stage_of_chunk(const CellWork& work, const AddedChunk& c, Picoseconds& last_forward) {
  VirtualStage costs;
  const auto pass = [&](PassCost& cost, auto sums, auto member) {
    cost = range(work.again->sums.*sums, c.first, c.middle);
    cost += range(work.plain->sums.*sums, c.middle, c.end);
    cost.busy = cost.through;
    if (c.is_first) cost += work.plain->embedding.*member;
    if (c.is_last) cost += work.again->head.*member;
  };
  pass(costs.forward, &LayerSums::forward, &BlockCost::forward);
  pass(costs.backward, &LayerSums::backward, &BlockCost::backward);
  pass(costs.weight, &LayerSums::weight, &BlockCost::weight);
  costs.forward += second_forward(work, c);
  last_forward = 0;
  if (c.end == c.first) return costs;
  // After a pass's last layer on this stage, the micro-batch has nothing left to compute here. The stage is then free
  // for another micro-batch, so the time between the layer's last compute op and the next stage's first one does not
  // count as busy.
  const BlockCost &high = (c.middle == c.end ? work.again : work.plain)->layers[c.end - 1],
                  &low = (c.middle > c.first ? work.again : work.plain)->layers[c.first];
  if (!c.is_last) costs.forward.busy -= high.forward.through - high.forward.busy;
  if (!c.is_first) {
    costs.backward.busy -= low.backward.through - low.backward.busy;
    costs.weight.busy -= low.weight.through - low.weight.busy;
  }
  last_forward = work.woven ? 0 : high.forward.busy;
  costs.early = c.is_last ? work.again->head.early : high.early;
  return costs;
}

// Adds the costs of a chunk's passes to those of the stage. Where the schedule overlaps a forward and a backward op by
// op (`woven`), one of the two may compute while the other waits for transfers, so that only the time of kernels counts
// as busy.
void add_passes(StageWork& stage, const VirtualStage& costs, bool first_chunk, bool woven) {
  const auto add = [&](PassCost& sum, PassCost cost) {
    const Picoseconds through = sum.through;
    if (woven) cost.busy = cost.compute;
    sum += cost;
    if (!first_chunk) sum.through = through;
  };
  add(stage.forward, costs.forward);
  add(stage.backward, costs.backward);
  add(stage.weight, costs.weight);
}

// Adds the bytes of activations that a chunk keeps for each micro-batch, and the temporary bytes that the chunk's last
// layer and the model's output need. The temporary bytes are the lesser of those with and without recomputation of the
// last layer, so that recomputing more layers never raises the memory bound.
void add_kept(const CellWork& work, StageWork& stage, const AddedChunk& c, ChunkWork& chunk) {
  const LayerSums &again = work.again->sums, &plain = work.plain->sums;
  const Bytes kept = again.kept[c.middle] - again.kept[c.first] + plain.kept[c.end] - plain.kept[c.middle];
  const std::int64_t gone = c.first + c.away, both = std::min(c.middle, gone);
  if (c.away > 0) chunk.left = again.leaves[both] - again.leaves[c.first] + plain.leaves[gone] - plain.leaves[both];
  chunk.kept = std::max<Bytes>(0, kept - chunk.left);
  // A vision encoder's layers count with the embedding. They may or may not be recomputed with the other layers, so
  // that the lesser number of bytes counts.
  if (c.is_first) chunk.kept += std::min(work.again->embedding.kept, work.plain->embedding.kept);
  stage.head_kept = c.is_last ? work.again->head.kept : 0;
  stage.head_forward = c.is_last ? work.again->head.forward_extra : 0;
  stage.head_backward = c.is_last ? work.again->head.backward_extra : 0;
  stage.layer_backward = stage.layer_forward = 0;
  if (c.end > c.first) {
    const BlockCost &a = work.again->layers[c.end - 1], &b = work.plain->layers[c.end - 1];
    stage.layer_backward = std::min(a.backward_extra, b.backward_extra);
    stage.layer_forward = std::min(a.forward_extra - a.kept, b.forward_extra - b.kept);
  }
  chunk.kept += stage.head_kept;
}

void add_weights(const CellWork& work, bool tied, StageWork& stage, const AddedChunk& c, ChunkWork& chunk) {
  const LayerSums& sums = work.plain->sums;
  StageWeights& w = stage.weights;
  const std::int64_t before = w.elements, in_layers = sums.elements[c.end] - sums.elements[c.first];
  w.elements += in_layers;
  w.expert_elements += sums.expert_elements[c.end] - sums.expert_elements[c.first];
  w.eight_bit_elements += sums.eight_bit_elements[c.end] - sums.eight_bit_elements[c.first];
  if (c.is_first) w.elements += work.plain->embedding.elements;
  if (c.is_last) {
    w.elements += work.again->head.elements;
    // A weight matrix that embedding and output share (tied embeddings) counts once, with the embedding, if both may be
    // on the same stage.
    const bool meet = work.cell.layout.pipeline == 1 || !work.in_turn;
    if (tied && meet) w.elements -= std::min(work.again->head.elements, work.plain->embedding.elements);
    w.expert_elements += work.again->head.expert_elements;
  }
  w.layer_elements += in_layers;
  stage.layers += c.end - c.first;
  stage.last_layers = c.end - c.first;
  chunk.elements = w.elements - before;
}

// Adds the weights of the frozen model beside the one that trains, of which a chunk has its part.
void add_frozen(const CellWork& work, bool tied, StageWeights& weights, const AddedChunk& c) {
  if (work.second_cut == nullptr) return;
  const ModelCost& second = *work.plain->second;
  const std::int64_t first = work.second_cut->first[c.place], end = first + work.second_cut->layers[c.place];
  weights.frozen_elements += second.sums.elements[end] - second.sums.elements[first];
  weights.frozen_expert_elements += second.sums.expert_elements[end] - second.sums.expert_elements[first];
  if (c.is_first) weights.frozen_elements += second.embedding.elements;
  if (!c.is_last) return;
  weights.frozen_elements += second.head.elements;
  if (tied && work.cell.layout.pipeline == 1)
    weights.frozen_elements -= std::min(second.head.elements, second.embedding.elements);
}

// Adds the costs of virtual stage k to those of pipeline stage s, which computes it.
void add_chunk(CellWork& work, const Spec& base, std::int64_t s, std::int64_t k, LayersLeft& left) {
  StageWork& stage = work.stages[s];
  const AddedChunk c = take_chunk(work, k, left);
  VirtualStage& costs = work.virtual_stages[k] = stage_of_chunk(work, c, stage.last_forward);
  const bool first_chunk = stage.first_place < 0;
  add_passes(stage, costs, first_chunk, work.woven);
  if (first_chunk) stage.first_place = c.place;
  ChunkWork& chunk = work.chunk_works.emplace_back();
  add_kept(work, stage, c, chunk);
  add_weights(work, base.model.tied_embeddings, stage, c, chunk);
  add_frozen(work, base.second && base.second->model.tied_embeddings, stage.weights, c);
  if (first_chunk) stage.weights.first_elements = stage.weights.elements;
}

void add_chunks(CellWork& work, const Spec& base) {
  const Model& model = base.model;
  const MemoryPlan& memory_plan = work.cell.memory_plan;
  const std::int64_t away = memory_plan.activations == "none"    ? 0
                            : memory_plan.activation_layers <= 0 ? model.layers
                                                                 : memory_plan.activation_layers;
  const LayersLeft most{most_again(memory_plan, model.layers), away};
  for (std::int64_t s = 0; s < work.cell.layout.pipeline; ++s) {
    LayersLeft left = most;
    for (const std::int64_t k : work.placed->of_stage[s]) {
      if (work.cell.copies > 1) left = most;
      add_chunk(work, base, s, k, left);
    }
  }
}

// Finds for every stage the time until the first micro-batch arrives (head), and the time in which the last gradient
// goes back to the first stage (tail). Both are those of the stage's first chunk in model order, which has the fewest
// layers before it.
void find_ways(CellWork& work) {
  const std::int64_t p = work.cell.layout.pipeline;
  std::vector<Picoseconds> ahead(p + 1, 0), behind(p + 1, 0);
  for (std::int64_t k = 0; k < p; ++k) {
    ahead[k + 1] = ahead[k] + work.virtual_stages[k].forward.to_result();
    behind[k + 1] = behind[k] + work.virtual_stages[k].way_back();
  }
  for (std::int64_t s = 0; s < p; ++s) {
    StageWork& stage = work.stages[s];
    std::int64_t first = stage.first_place;
    for (const std::int64_t k : work.placed->of_stage[s]) first = std::min(first, k % std::ssize(work.cut->layers));
    stage.head = ahead[first];
    // The part of the chunk's backward that may still run after the gradient of the chunk's input has been sent on
    // towards the first stage, such as sums of weight gradients.
    const Picoseconds late = work.virtual_stages[first].backward.late;
    stage.tail = std::max<Picoseconds>(0, behind[first] - late);
    stage.first_place = first;
  }
}

}  // namespace

bool is_possible(LayoutCosts& costs, const MemoryPlan& memory_plan) {
  const std::int64_t p = costs.layout.pipeline, v = memory_plan.virtual_stages;
  if (cut_of(costs.cache, p, v).layers.empty()) return false;
  if (costs.cache.space.base().second && second_cut_of(costs.cache, p, v).layers.empty()) return false;
  const bool splits = find_schedule(memory_plan.schedule).splits;
  const ShardingClass kind = sharding_class(costs.cache.space.base(), memory_plan);
  return model_cost_of(costs, "none", kind, splits).possible &&
         model_cost_of(costs, memory_plan.recompute, kind, splits).possible;
}

std::int64_t most_again(const MemoryPlan& memory_plan, std::int64_t layers) {
  return memory_plan.recompute == "none" ? 0 : memory_plan.recompute_layers < 0 ? layers : memory_plan.recompute_layers;
}

CellWork cell_work(LayoutCosts& costs, const MemoryPlan& memory_plan) {
  const Spec& base = costs.cache.space.base();
  const ScheduleRow& row = find_schedule(memory_plan.schedule);
  const ShardingClass kind = sharding_class(base, memory_plan);
  const bool leaves = memory_plan.activations != "none";
  CellWork work{.cell = cell_of(costs.layout, memory_plan)};
  work.cut = &cut_of(costs.cache, costs.layout.pipeline, memory_plan.virtual_stages);
  if (base.second) work.second_cut = &second_cut_of(costs.cache, costs.layout.pipeline, memory_plan.virtual_stages);
  work.placed = &chunks_of(costs.cache, work.cell);
  work.plain = &model_cost_of(costs, "none", kind, row.splits, leaves);
  work.again = memory_plan.recompute == "none" ? work.plain
                                               : &model_cost_of(costs, memory_plan.recompute, kind, row.splits, leaves);
  work.in_turn = row.placement == ChunkPlacement::in_turn;
  work.splits = row.splits;
  work.woven = row.weaving == Weaving::always;
  work.units = reduces_units(base, memory_plan);
  work.stages.resize(costs.layout.pipeline);
  work.virtual_stages.resize(work.placed->where.stage_of.size());
  work.chunks = memory_plan.virtual_stages * work.cell.copies;
  work.chunk_works.reserve(work.virtual_stages.size());
  add_chunks(work, base);
  find_ways(work);
  return work;
}

StageWeights fewest_elements(const CellWork& work) {
  StageWeights least = work.stages.front().weights;
  for (const StageWork& s : work.stages) {
    least.elements = std::min(least.elements, s.weights.elements);
    least.expert_elements = std::min(least.expert_elements, s.weights.expert_elements);
    least.layer_elements = std::min(least.layer_elements, s.weights.layer_elements);
  }
  return least;
}

}  // namespace orrery
