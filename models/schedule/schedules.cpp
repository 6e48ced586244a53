#include "models/schedule/schedules.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/error.h"
#include "models/schedule/bpipe.h"
#include "models/schedule/chimera.h"
#include "models/schedule/dualpipe.h"
#include "models/schedule/list_scheduling.h"
#include "models/schedule/v_schedules.h"
#include "models/schedule/zero_bubble.h"

namespace orrery {
namespace {

using Order = std::vector<Action>;
using Orders = std::vector<Order>;

// A schedule whose stages' orders are told one by one.
template <Order (*order)(const ScheduleShape&, std::int64_t)>
Orders stage_by_stage(const ScheduleShape& shape) {
  Orders orders;
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) orders.push_back(order(shape, stage));
  return orders;
}

// The naive order: every micro-batch goes forward and back before the next: layer-wise model parallelism.
Order naive(const ScheduleShape& shape, std::int64_t) {
  Order order;
  for (std::int32_t i = 0; i < shape.micro_batches; ++i) {
    order.push_back({Phase::forward, 0, i});
    order.push_back({Phase::backward, 0, i});
  }
  return order;
}

// GPipe (Huang et al. 2019): all forwards, then all backwards.
Order gpipe(const ScheduleShape& shape, std::int64_t) {
  Order order;
  for (std::int32_t i = 0; i < shape.micro_batches; ++i) order.push_back({Phase::forward, 0, i});
  for (std::int32_t i = 0; i < shape.micro_batches; ++i) order.push_back({Phase::backward, 0, i});
  return order;
}

std::int64_t group_of(const ScheduleShape& shape) { return shape.group > 0 ? shape.group : shape.stages; }

// The order in which micro-batches pass through the chunks: groups of p micro-batches, all chunks for each group
// (Narayanan et al. 2021, section 2.2.2), or larger groups (Megatron-Core's microbatch_group_size_per_vp_stage).
// Backward runs through the chunks from the last.
Order passes(const ScheduleShape& shape, Phase phase) {
  Order order;
  for (std::int64_t first = 0; first < shape.micro_batches; first += group_of(shape)) {
    const std::int64_t last = std::min(first + group_of(shape), shape.micro_batches);
    for (std::int64_t c = 0; c < shape.chunks; ++c) {
      const std::int64_t chunk = phase == Phase::forward ? c : shape.chunks - 1 - c;
      for (std::int64_t i = first; i < last; ++i) {
        order.push_back({phase, static_cast<std::int32_t>(chunk), static_cast<std::int32_t>(i)});
      }
    }
  }
  return order;
}

// `warm_up` forwards, then one forward and one backward in turn, then the remaining backwards. Woven, one forward more
// goes first, so that no pair has a micro-batch twice (Megatron-Core schedules.py: num_warmup_microbatches + 1).
Order one_forward_one_backward(const ScheduleShape& shape, std::int64_t warm_up) {
  const Order forward = passes(shape, Phase::forward);
  const Order backward = passes(shape, Phase::backward);
  const auto total = static_cast<std::int64_t>(forward.size());
  warm_up = std::min(warm_up + (shape.woven ? 1 : 0), total);
  Order order(forward.begin(), forward.begin() + warm_up);
  for (std::int64_t i = 0; i < total; ++i) {
    if (i + warm_up < total) {
      order.push_back(forward[i + warm_up]);
      order.back().woven = shape.woven;
    }
    order.push_back(backward[i]);
  }
  return order;
}

// 1F1B (PipeDream-flush): at most p - stage micro-batches in flight.
Order one_f_one_b(const ScheduleShape& shape, std::int64_t stage) {
  return one_forward_one_backward(shape, shape.stages - stage - 1);
}

// Megatron-LM's interleaved order: 2 (p - stage - 1) + (v - 1) times a group's forwards first, with one chunk more
// where its overlap of a forward's tokens with a backward's asks for it. PyTorch's ScheduleInterleaved1F1B is the same.
Order interleaved(const ScheduleShape& shape, std::int64_t stage) {
  const std::int64_t first = 2 * (shape.stages - stage - 1) + (shape.chunks - 1) * group_of(shape);
  return one_forward_one_backward(shape, first + shape.extra_warm_up);
}

// ZB-H1 (Qi et al. 2024, arXiv:2401.10241, section 2): at most p micro-batches in flight on every stage, counted to
// their weight gradient.
Order zb_h1(const ScheduleShape& shape, std::int64_t stage) {
  return regular_zero_bubble(shape.micro_batches, shape.stages - stage - 1, stage);
}

// ZB-H2: at most 2p - 1 micro-batches in flight, enough forwards to fill the time until the first gradient comes back.
Order zb_h2(const ScheduleShape& shape, std::int64_t stage) {
  return regular_zero_bubble(shape.micro_batches, 2 * (shape.stages - stage - 1), 2 * stage);
}

Orders zb_1p(const ScheduleShape& shape) { return search_zero_bubble(shape, shape.stages); }
Orders zb_2p(const ScheduleShape& shape) { return search_zero_bubble(shape, 2 * shape.stages); }

// V schedules (Qi et al. 2024, arXiv:2405.15362) that keep p, (p + 2) / 2 and (p + 4) / 3 micro-batches' activations.
// With barriers their stages share the vocabulary.
template <std::int64_t barriers = 0>
Orders zb_v(const ScheduleShape& shape) {
  return v_orders(shape, {4, 2, 4, 2}, 2 * shape.stages, barriers);
}
template <std::int64_t barriers = 0>
Orders v_half(const ScheduleShape& shape) {
  return v_orders(shape, {2, 1, 2, 1}, 2 * ((shape.stages + 2) / 2), barriers);
}
template <std::int64_t barriers = 0>
Orders v_min(const ScheduleShape& shape) {
  return v_orders(shape, {1, 1, 1, 1}, 2 * ((shape.stages + 4) / 3), barriers);
}

template <std::int64_t copies>
Orders chimera(const ScheduleShape& shape) {
  return chimera_orders(shape, copies);
}

// DualPipeV: DualPipe cut in half, where a V's two ways are the two directions.
Order dualpipe_v(const ScheduleShape& shape, std::int64_t stage) {
  return dualpipe_order(shape.stages, stage, shape.micro_batches);
}

// DualPipe: the ranks of the second half see the directions exchanged.
Order dualpipe(const ScheduleShape& shape, std::int64_t stage) {
  const bool mirrored = 2 * stage >= shape.stages;
  Order order = dualpipe_order(shape.stages / 2, mirrored ? shape.stages - 1 - stage : stage, shape.micro_batches / 2);
  for (Action& a : order) {
    if (mirrored) a.chunk = 1 - a.chunk;
    a.micro_batch = 2 * a.micro_batch + a.chunk;
  }
  return order;
}

// 1F1B with a shared vocabulary (Yeung et al. 2024): barriers for the loss and for the hidden states' gradient
// (algorithm 1), or one for both (algorithm 2). Stage i keeps at most p - i + barriers micro-batches.
template <std::int64_t barriers>
Orders vocabulary_1f1b(const ScheduleShape& shape) {
  return best_filled(shape, ChunkPlacement::in_turn, stage_by_stage<one_f_one_b>(shape), {{.barriers = barriers}});
}

}  // namespace

const std::vector<ScheduleRow>& schedule_rows() {
  static const std::vector<ScheduleRow> rows = {
      {"naive", "one micro-batch at a time through all stages", 1, false, ChunkPlacement::in_turn,
       stage_by_stage<naive>},
      {"gpipe", "all forwards, then all backwards", 1, false, ChunkPlacement::in_turn, stage_by_stage<gpipe>},
      {"1f1b", "one forward, one backward: at most p micro-batches in flight", 1, false, ChunkPlacement::in_turn,
       stage_by_stage<one_f_one_b>},
      {"dapple", "1F1B over stages that DAPPLE's planner cuts, by compute and transfers alone (Fan et al. 2021)", 1,
       false, ChunkPlacement::in_turn, stage_by_stage<one_f_one_b>},
      {"interleaved", "1F1B over v chunks a stage: bubble divided by v", 0, false, ChunkPlacement::in_turn,
       stage_by_stage<interleaved>},
      {"zb-h1", "weight gradients fill bubbles, in the memory of 1F1B (Qi et al. 2024)", 1, true,
       ChunkPlacement::in_turn, stage_by_stage<zb_h1>},
      {"zb-h2", "the same with up to 2p - 1 micro-batches in flight", 1, true, ChunkPlacement::in_turn,
       stage_by_stage<zb_h2>},
      {"zb-1p", "zero bubble, order searched with at most p micro-batches in flight", 1, true, ChunkPlacement::in_turn,
       zb_1p},
      {"zb-2p", "zero bubble, order searched with at most 2p micro-batches in flight", 1, true, ChunkPlacement::in_turn,
       zb_2p},
      {"zb-v", "zero bubble on stages that hold a V of two, p micro-batches in flight (Qi et al. 2024)", 2, true,
       ChunkPlacement::v_shaped, zb_v<>},
      {"v-half", "the same with about p / 2 micro-batches in flight", 2, true, ChunkPlacement::v_shaped, v_half<>},
      {"v-min", "the same with about p / 3", 2, true, ChunkPlacement::v_shaped, v_min<>},
      {"dualpipev", "a V whose forwards and backwards are woven op by op; at least 2p micro-batches (DeepSeek)", 2,
       true, ChunkPlacement::v_shaped, stage_by_stage<dualpipe_v>},
      {"chimera", "two copies of the model in opposite directions: bubbles halved (Li and Hoefler 2021)", 1, false,
       ChunkPlacement::both_ways, chimera<2>},
      {"chimera-4", "four copies, two each way: bubbles shorter still (Li and Hoefler 2021)", 1, false,
       ChunkPlacement::both_ways, chimera<4>, Updates::flush, nullptr, 0, "", 4},
      {"chimera-8", "eight copies, four each way", 1, false, ChunkPlacement::both_ways, chimera<8>, Updates::flush,
       nullptr, 0, "", 8},
      {"dualpipe", "the same, forwards and backwards woven; at least 2p micro-batches (DeepSeek)", 1, true,
       ChunkPlacement::both_ways, stage_by_stage<dualpipe>},
      {"pipedream",
       "1F1B without flushes: an update after every micro-batch, stage i keeps p - i versions of its weights", 1, false,
       ChunkPlacement::in_turn, stage_by_stage<one_f_one_b>, Updates::every_micro_batch},
      {"pipedream-2bw", "the same with an update a step, of at least p micro-batches, and two versions everywhere", 1,
       false, ChunkPlacement::in_turn, stage_by_stage<one_f_one_b>, Updates::every_step},
      {"bpipe",
       "1F1B whose early stages leave activations with late ones: at most (p + 2) / 2 on each (Kim et al. 2023)", 1,
       false, ChunkPlacement::in_turn, stage_by_stage<one_f_one_b>, Updates::flush, balance_activations},
      {"vocab-1f1b",
       "1F1B over stages that share the vocabulary: p + 1 micro-batches in flight (Yeung et al. 2024, algorithm 2)", 1,
       false, ChunkPlacement::in_turn, vocabulary_1f1b<1>, Updates::flush, nullptr, 1, "1f1b"},
      {"vocab-1f1b-alg1", "the same by algorithm 1: less arithmetic, a second barrier, p + 2 micro-batches", 1, false,
       ChunkPlacement::in_turn, vocabulary_1f1b<2>, Updates::flush, nullptr, 2, "1f1b"},
      {"vocab-zb-v", "zb-v over stages that share the vocabulary, algorithm 2: one more micro-batch in flight", 2, true,
       ChunkPlacement::v_shaped, zb_v<1>, Updates::flush, nullptr, 1, "zb-v"},
      {"vocab-zb-v-alg1", "the same by algorithm 1: two more", 2, true, ChunkPlacement::v_shaped, zb_v<2>,
       Updates::flush, nullptr, 2, "zb-v"},
      {"vocab-v-half", "v-half over stages that share the vocabulary, algorithm 2", 2, true, ChunkPlacement::v_shaped,
       v_half<1>, Updates::flush, nullptr, 1, "v-half"},
      {"vocab-v-half-alg1", "the same by algorithm 1", 2, true, ChunkPlacement::v_shaped, v_half<2>, Updates::flush,
       nullptr, 2, "v-half"},
      {"vocab-v-min", "v-min over stages that share the vocabulary, algorithm 2", 2, true, ChunkPlacement::v_shaped,
       v_min<1>, Updates::flush, nullptr, 1, "v-min"},
      {"vocab-v-min-alg1", "the same by algorithm 1", 2, true, ChunkPlacement::v_shaped, v_min<2>, Updates::flush,
       nullptr, 2, "v-min"},
  };
  return rows;
}

const ScheduleRow& find_schedule(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ScheduleRow& row : schedule_rows()) {
    if (row.name == name) return row;
    names.push_back(row.name);
  }
  throw Error(fmt::format("strategy.schedule: '{}' is not built yet; known: {}", name, fmt::join(names, ", ")));
}

Schedule place_chunks(ChunkPlacement placement, const ScheduleShape& shape, std::int64_t copies) {
  Schedule schedule;
  schedule.copies = placement == ChunkPlacement::both_ways ? copies : 1;
  for (std::int64_t k = 0; k < shape.stages * shape.chunks * schedule.copies; ++k) {
    const std::int64_t chunk = k / shape.stages;
    const std::int64_t ahead = schedule.copies > 1 ? chunk / 2 * (2 * shape.stages / schedule.copies) : 0;
    const std::int64_t at = (k + ahead) % shape.stages;
    const bool back = placement != ChunkPlacement::in_turn && chunk % 2 == 1;
    schedule.stage_of.push_back(static_cast<std::int32_t>(back ? shape.stages - 1 - at : at));
    schedule.chunk_of.push_back(static_cast<std::int32_t>(chunk));
  }
  return schedule;
}

Schedule place_chunks(const ScheduleRow& row, const ScheduleShape& shape) {
  Schedule schedule = place_chunks(row.placement, shape, row.copies);
  if (row.vocabulary_barriers == 0 || shape.stages == 1) return schedule;
  schedule.input_chunk = static_cast<std::int32_t>(shape.chunks);
  schedule.output_chunk = schedule.input_chunk + 1;
  schedule.barriers = row.vocabulary_barriers;
  return schedule;
}

Schedule make_schedule(std::string_view name, const ScheduleShape& shape) {
  const ScheduleRow& row = find_schedule(name);
  Schedule schedule = place_chunks(row, shape);
  schedule.order = row.orders(shape);
  if (row.moves != nullptr) schedule.moves = row.moves(schedule.order);
  return schedule;
}

std::int64_t hop(const Schedule& schedule, std::size_t boundary) {
  const std::int64_t from = schedule.stage_of[boundary], to = schedule.stage_of[boundary + 1];
  const std::int64_t stages = 1 + *std::max_element(schedule.stage_of.begin(), schedule.stage_of.end());
  return from == to ? 0 : (from + 1) % stages == to ? 1 : -1;
}

bool ends_meet(const Schedule& schedule) {
  return schedule.copies > 1 || schedule.stage_of.front() == schedule.stage_of[schedule.virtual_stages() - 1];
}

std::int64_t model_copies(std::string_view schedule) {
  for (const ScheduleRow& row : schedule_rows()) {
    if (row.name == schedule && row.placement == ChunkPlacement::both_ways) return row.copies;
  }
  return 1;
}

bool spreads_vocabulary(std::string_view schedule) {
  const auto& rows = schedule_rows();
  return std::any_of(rows.begin(), rows.end(),
                     [&](const ScheduleRow& row) { return row.name == schedule && row.vocabulary_barriers > 0; });
}

bool splits_backward(const Schedule& schedule) {
  return std::any_of(schedule.order.begin(), schedule.order.end(), [](const Order& order) {
    return std::any_of(order.begin(), order.end(), [](const Action& a) { return a.phase == Phase::weight_gradient; });
  });
}

bool is_mirrored(const Schedule& schedule) {
  const std::size_t count = schedule.order.size();
  for (std::size_t s = 0; s < count / 2; ++s) {
    const Order &one = schedule.order[s], &other = schedule.order[count - 1 - s];
    const bool same =
        std::equal(one.begin(), one.end(), other.begin(), other.end(), [](const Action& a, const Action& b) {
          return a.phase == b.phase && a.chunk == 1 - b.chunk && a.woven == b.woven;
        });
    if (!same) return false;
  }
  return true;
}

}  // namespace orrery
