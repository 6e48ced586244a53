#include <algorithm>
#include <utility>

#include "models/layout/uncut_place.h"
#include "models/layout/whole_layers.h"
#include "models/planner/gradient_ops.h"
#include "models/planner/matrix_optimizers.h"

namespace orrery {
namespace {

// Layers of a chunk with the same shape, in the order of the chunk's flat buffers.
using LikeLayers = std::vector<const Entry*>;

std::vector<LikeLayers> like_layers(const Draft& draft, const Chunk& chunk) {
  std::vector<LikeLayers> groups;
  for (const Entry& e : chunk.entries) {
    const Block& block = draft.plan.blocks[e.block];
    const auto trains = [](const LocalParameter& p) { return p.in > 1 && !p.frozen; };
    if (block.role != BlockRole::layer || std::ranges::none_of(block.parameters, trains)) continue;
    const auto alike = [&](const LikeLayers& g) { return g.front()->block == e.block; };
    const auto found = std::ranges::find_if(groups, alike);
    if (found == groups.end())
      groups.push_back({&e});
    else
      found->push_back(&e);
  }
  return groups;
}

// Writes the ops that orthogonalize a chunk's layers in rounds. In a round every data-parallel rank works on one layer.
class Rounds {
 public:
  Rounds(const Draft& draft, TaskWriter& writer, const Chunk& chunk, std::vector<TaskId> after)
      : draft_(draft), writer_(writer), chunk_(chunk), ready_(std::move(after)) {}

  void write(const LikeLayers& layers) {
    const auto ranks = static_cast<std::size_t>(draft_.group_size(Dimension::data));
    for (std::size_t first = 0; first < layers.size(); first += ranks) {
      const LikeLayers round(layers.begin() + static_cast<std::ptrdiff_t>(first),
                             layers.begin() + static_cast<std::ptrdiff_t>(std::min(first + ranks, layers.size())));
      shares_layers(draft_) ? write_sharded(round) : write_whole(round);
    }
  }

  const std::vector<TaskId>& ready() const { return ready_; }

 private:
  // Ranks with shards send each rank its layer's pieces, and get the pieces of the orthogonalized layers back.
  void write_sharded(const LikeLayers& round) {
    const Entry& first = *round.front();
    const std::int64_t moved = share_of_layer(draft_, chunk_, first) * std::ssize(round);
    const std::int64_t layer = complete_layer(draft_, chunk_, first);
    move(first, moved, false);
    exchange("momentum by matrix", CollectiveKind::all_to_all, first, layer);
    write_products(first);
    exchange("updates by shard", CollectiveKind::all_to_all, first, layer, true);
    move(first, moved, true);
  }

  // Each rank with whole states takes one layer, and passes the orthogonalized layer on to the other ranks.
  void write_whole(const LikeLayers& round) {
    const Entry& first = *round.front();
    const std::int64_t layer = share_of_layer(draft_, chunk_, first);
    move(first, layer, false);
    write_products(first);
    for (std::size_t i = 0; i < round.size(); ++i) {
      if (draft_.group_size(Dimension::data) > 1)
        exchange("gather updates", CollectiveKind::broadcast, *round[i], layer, false, static_cast<std::int64_t>(i));
      move(*round[i], layer, true);
    }
  }

  // With tensor parallelism, every tensor rank gets the parts of all of them, and orthogonalizes the complete matrices.
  void write_products(const Entry& first) {
    const std::int64_t tensor = draft_.group_size(Dimension::tensor);
    if (tensor > 1) gather_parts(first, tensor * complete_layer(draft_, chunk_, first));
    const Block& block = draft_.plan.blocks[first.block];
    for (std::size_t i = 0; i < block.parameters.size(); ++i) {
      const LocalParameter& p = block.parameters[i];
      if (p.in > 1 && !p.frozen) orthogonalize(first, p, static_cast<std::int64_t>(i));
    }
  }

  // Matrices are orthogonalized in the format that their copies have: 16 bits under 8-bit training too.
  Precision precision() const {
    const Precision p = draft_.facts.spec.strategy.precision;
    return is_eight_bit(p) ? Precision::bf16 : p;
  }

  void orthogonalize(const Entry& first, const LocalParameter& p, std::int64_t parameter) {
    const auto size = [&](Dimension d) { return GroupPosition{0, draft_.group_size(d)}; };
    const UncutShape whole = uncut_place(draft_.facts.spec.model, p, size).whole;
    emit({.name = "orthogonalize " + p.name,
          .work = Orthogonalize{.rows = whole.out, .columns = whole.in, .first = first.base, .parameter = parameter},
          .phase = Phase::step,
          .precision = precision(),
          .optimizer = true,
          .operands = {state(kBuckets, Access::read_write)}});
  }

  void move(const Entry& first, std::int64_t elements, bool back) {
    Op op = {.name = back ? "directions from matrices" : "directions to matrices",
             .work = MoveDirections{.elements = elements,
                                    .from = draft_.facts.gradient_width,
                                    .to = draft_.context.width,
                                    .first = first.base,
                                    .back = back},
             .phase = Phase::step,
             .optimizer = true,
             .operands = {optimizer_gradients(draft_, Access::read), state(kBuckets, Access::write)}};
    if (back) op.operands = {state(kBuckets, Access::read), optimizer_gradients(draft_, Access::write)};
    emit(op);
  }

  void exchange(const char* name, CollectiveKind kind, const Entry& first, std::int64_t elements, bool back = false,
                std::int64_t root = 0) {
    const Bytes width = draft_.context.width;
    emit({.name = name,
          .work = Collective{.kind = kind,
                             .group = Dimension::data,
                             .bytes = elements * width,
                             .width = width,
                             .first = first.base,
                             .root = root,
                             .back = back},
          .phase = Phase::step,
          .lane = LaneKind::data_gather,
          .operands = {state(kBuckets, Access::read_write)}});
  }

  void gather_parts(const Entry& first, std::int64_t elements) {
    const Bytes width = draft_.context.width;
    emit({.name = "gather momentum",
          .work = Collective{.kind = CollectiveKind::all_gather,
                             .group = Dimension::tensor,
                             .bytes = elements * width,
                             .width = width,
                             .first = first.base},
          .phase = Phase::step,
          .lane = LaneKind::tensor,
          .operands = {state(kBuckets, Access::read_write)}});
  }

  void emit(const Op& op) { ready_ = {writer_.emit(op, chunk_.state, ready_)}; }

  const Draft& draft_;
  TaskWriter& writer_;
  const Chunk& chunk_;
  std::vector<TaskId> ready_;
};

}  // namespace

std::vector<TaskId> orthogonalize(const Draft& draft, TaskWriter& writer, const Chunk& chunk,
                                  const std::vector<TaskId>& after) {
  Rounds rounds(draft, writer, chunk, after);
  for (const LikeLayers& layers : like_layers(draft, chunk)) rounds.write(layers);
  return rounds.ready();
}

}  // namespace orrery
