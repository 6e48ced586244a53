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

// Returns the orders of a schedule that is defined by a function for the order of one stage.
template <Order (*order)(const ScheduleShape&, std::int64_t)>
Orders stage_by_stage(const ScheduleShape& shape) {
  Orders orders;
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) orders.push_back(order(shape, stage));
  return orders;
}

// The naive order of layer-wise model parallelism: every micro-batch goes forward and back before the next one starts.
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

// Returns the order in which micro-batches pass through the chunks of a stage: p micro-batches go through all chunks,
// then the next p (Narayanan et al. 2021, section 2.2.2); or larger groups than p (Megatron-Core's
// microbatch_group_size_per_vp_stage). Backward begins with the last chunk.
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

// Returns `warm_up` forwards, then forwards and backwards in turn, then the other backwards. If each forward overlaps
// with the next backward, warm-up has one more forward, so that they are of different micro-batches (as in Megatron).
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

// 1F1B (PipeDream-flush): at most p - stage micro-batches are in flight on a stage of p.
Order one_f_one_b(const ScheduleShape& shape, std::int64_t stage) {
  return one_forward_one_backward(shape, shape.stages - stage - 1);
}

// Megatron-LM's interleaved order begins with 2 (p - stage - 1) + (v - 1) * group forwards, and one more if a forward's
// token dispatch overlaps with a backward. PyTorch's ScheduleInterleaved1F1B is the same.
Order interleaved(const ScheduleShape& shape, std::int64_t stage) {
  const std::int64_t first = 2 * (shape.stages - stage - 1) + (shape.chunks - 1) * group_of(shape);
  return one_forward_one_backward(shape, first + shape.extra_warm_up);
}

// ZB-H1 (Qi et al. 2024, arXiv:2401.10241, section 2): at most p micro-batches are in flight on every stage, where each
// counts until its weight gradient.
Order zb_h1(const ScheduleShape& shape, std::int64_t stage) {
  return regular_zero_bubble(shape.micro_batches, shape.stages - stage - 1, stage);
}

// ZB-H2: at most 2p - 1 micro-batches are in flight, enough to fill the time until the first gradient comes back.
Order zb_h2(const ScheduleShape& shape, std::int64_t stage) {
  return regular_zero_bubble(shape.micro_batches, 2 * (shape.stages - stage - 1), 2 * stage);
}

Orders zb_1p(const ScheduleShape& shape) { return search_zero_bubble(shape, shape.stages); }
Orders zb_2p(const ScheduleShape& shape) { return search_zero_bubble(shape, 2 * shape.stages); }

// The V schedules (Qi et al. 2024, arXiv:2405.15362) zb-v, v-half and v-min, which keep the activations of p, (p + 2) /
// 2 and (p + 4) / 3 micro-batches on a stage. With barriers, the stages share the vocabulary.
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

// DualPipeV: DualPipe cut in half, so that the way to the last stage and the way back of a V are the two directions.
Order dualpipe_v(const ScheduleShape& shape, std::int64_t stage) {
  return dualpipe_order(shape.stages, stage, shape.micro_batches);
}

// DualPipe: rank i of the second half of p ranks runs the order of rank p - 1 - i with the directions exchanged.
Order dualpipe(const ScheduleShape& shape, std::int64_t stage) {
  const bool mirrored = 2 * stage >= shape.stages;
  Order order = dualpipe_order(shape.stages / 2, mirrored ? shape.stages - 1 - stage : stage, shape.micro_batches / 2);
  for (Action& a : order) {
    if (mirrored) a.chunk = 1 - a.chunk;
    a.micro_batch = 2 * a.micro_batch + a.chunk;
  }
  return order;
}

// 1F1B with a shared vocabulary (Yeung et al. 2024): one barrier for the loss and one for the hidden states' gradient
// (algorithm 1), or one for both (algorithm 2). Stage i keeps at most p - i + barriers micro-batches.
template <std::int64_t barriers>
Orders vocabulary_1f1b(const ScheduleShape& shape) {
  return best_filled(shape, ChunkPlacement::in_turn, stage_by_stage<one_f_one_b>(shape), {{.barriers = barriers}});
}

std::int64_t one_in_flight(std::int64_t, std::int64_t, std::int64_t) { return 1; }
std::int64_t all_in_flight(std::int64_t, std::int64_t, std::int64_t micro_batches) { return micro_batches; }
std::int64_t stages_behind(std::int64_t stages, std::int64_t stage, std::int64_t micro_batches) {
  return std::min(micro_batches, stages - stage);
}
std::int64_t twice_the_stages_behind(std::int64_t stages, std::int64_t stage, std::int64_t micro_batches) {
  return std::min(micro_batches, 2 * (stages - stage) - 1);
}

}  // namespace

// Sources of the formulas of bubbles: Huang et al. 2019 (GPipe); Narayanan et al. 2021, section 2.2 (1F1B, interleaved;
// here as a fraction of the complete step). The other formulas assume equal times of forward, input and weight
// gradient: Qi et al. 2024, arXiv 2401.10241 (zb-h1; zb-h2, which leaves no stage idle without a barrier, section 4)
// and arXiv 2405.15362, table 1 (V schedules); Li and Hoefler 2021, table 2 (Chimera with as many micro-batches as
// stages); DeepSeek-AI 2024, table 2 (DualPipe without overlap); Narayanan et al. 2019, 2021 (PipeDream once the
// pipeline is filled).
const std::vector<ScheduleRow>& schedule_rows() {
  static const std::vector<ScheduleRow> rows = {
      {.name = "naive",
       .about = "one micro-batch at a time through all stages",
       .orders = stage_by_stage<naive>,
       .in_flight = one_in_flight,
       .bubbles = {{{"(p-1)/p", [](double p, double, double) { return (p - 1) / p; }}}}},
      {.name = "gpipe",
       .about = "all forwards, then all backwards",
       .orders = stage_by_stage<gpipe>,
       .in_flight = all_in_flight,
       .bubbles = {{{"(p-1)/(m+p-1)", [](double p, double m, double) { return (p - 1) / (m + p - 1); }}}}},
      {.name = "1f1b",
       .about = "one forward, one backward: at most p micro-batches in flight",
       .orders = stage_by_stage<one_f_one_b>,
       .in_flight = stages_behind,
       .bubbles = {{{"(p-1)/(m+p-1)", [](double p, double m, double) { return (p - 1) / (m + p - 1); }}}},
       .weaving = Weaving::asked_without_pipeline,
       .searched = Searched::first},
      {.name = "dapple",
       .about = "1F1B over stages that DAPPLE's planner cuts, by compute and transfers alone (Fan et al. 2021)",
       .orders = stage_by_stage<one_f_one_b>,
       .in_flight = stages_behind,
       .bubbles = {{{"(p-1)/(m+p-1)", [](double p, double m, double) { return (p - 1) / (m + p - 1); }}}},
       .plans_stages = true,
       .searched = Searched::listed},
      {.name = "interleaved",
       .about = "1F1B over v chunks a stage: bubble divided by v",
       .chunks = 0,
       .orders = stage_by_stage<interleaved>,
       .bubbles = {{{"(p-1)/(vm+p-1)", [](double p, double m, double v) { return (p - 1) / (v * m + p - 1); }}}},
       .takes_turns = true,
       .weaving = Weaving::asked,
       .searched = Searched::first},
      {.name = "zb-h1",
       .about = "weight gradients fill bubbles, in the memory of 1F1B (Qi et al. 2024)",
       .splits = true,
       .orders = stage_by_stage<zb_h1>,
       .in_flight = stages_behind,
       .bubbles = {{{"(p-1)/(3m+p-1)", [](double p, double m, double) { return (p - 1) / (3 * m + p - 1); }}}}},
      {.name = "zb-h2",
       .about = "the same with up to 2p - 1 micro-batches in flight",
       .splits = true,
       .orders = stage_by_stage<zb_h2>,
       .in_flight = twice_the_stages_behind,
       .bubbles = {{{"(p-1)/(3m+p-1)", [](double p, double m, double) { return (p - 1) / (3 * m + p - 1); }, 2, false,
                     0, BubbleFormula::Holds::with_barrier},
                    {"0", [](double, double, double) { return 0.0; }, 2, false, 0,
                     BubbleFormula::Holds::without_barrier}}},
       .warms_up_twice = true},
      {.name = "zb-1p",
       .about = "zero bubble, order searched with at most p micro-batches in flight",
       .splits = true,
       .orders = zb_1p,
       .fits_times = true},
      {.name = "zb-2p",
       .about = "zero bubble, order searched with at most 2p micro-batches in flight",
       .splits = true,
       .orders = zb_2p,
       .fits_times = true},
      {.name = "zb-v",
       .about = "zero bubble on stages that hold a V of two, p micro-batches in flight (Qi et al. 2024)",
       .chunks = 2,
       .splits = true,
       .placement = ChunkPlacement::v_shaped,
       .orders = zb_v<>,
       .bubbles = {{{"(p-1)/(6m+p-1)", [](double p, double m, double) { return (p - 1) / (6 * m + p - 1); }, 1, false,
                     0, BubbleFormula::Holds::with_barrier}}},
       .fits_times = true},
      {.name = "v-half",
       .about = "the same with about p / 2 micro-batches in flight",
       .chunks = 2,
       .splits = true,
       .placement = ChunkPlacement::v_shaped,
       .orders = v_half<>,
       .bubbles = {{{"at most p/(2m+p)", [](double p, double m, double) { return p / (2 * m + p); }, 1}}},
       .fits_times = true},
      {.name = "v-min",
       .about = "the same with about p / 3",
       .chunks = 2,
       .splits = true,
       .placement = ChunkPlacement::v_shaped,
       .orders = v_min<>,
       .bubbles = {{{"at most 2p/(3m+2p)", [](double p, double m, double) { return 2 * p / (3 * m + 2 * p); }, 1}}},
       .fits_times = true},
      {.name = "dualpipev",
       .about = "a V whose forwards and backwards are woven op by op; at least 2p micro-batches (DeepSeek)",
       .chunks = 2,
       .splits = true,
       .placement = ChunkPlacement::v_shaped,
       .orders = stage_by_stage<dualpipe_v>,
       .bubbles = {{{"(p-1)/(3m+p-1)", [](double p, double m, double) { return (p - 1) / (3 * m + p - 1); }, 2}}},
       .weaving = Weaving::always,
       .searched = Searched::listed},
      {.name = "chimera",
       .about = "two copies of the model in opposite directions: bubbles halved (Li and Hoefler 2021)",
       .placement = ChunkPlacement::both_ways,
       .orders = chimera<2>,
       .bubbles = {{{"(p-2)/(1.5m+p-2)", [](double p, double m, double) { return (p - 2) / (1.5 * m + p - 2); }, 1,
                     true}}},
       .copies = 2},
      {.name = "chimera-4",
       .about = "four copies, two each way: bubbles shorter still (Li and Hoefler 2021)",
       .placement = ChunkPlacement::both_ways,
       .orders = chimera<4>,
       .bubbles = {{{"(p-4)/(3m+p-4)", [](double p, double m, double) { return (p - 4) / (3 * m + p - 4); }, 1, true,
                     12}}},
       .copies = 4},
      {.name = "chimera-8",
       .about = "eight copies, four each way",
       .placement = ChunkPlacement::both_ways,
       .orders = chimera<8>,
       .bubbles = {{{"(p-8)/(6m+p-8)", [](double p, double m, double) { return (p - 8) / (6 * m + p - 8); }, 1, true,
                     24}}},
       .copies = 8},
      {.name = "dualpipe",
       .about = "the same, forwards and backwards woven; at least 2p micro-batches (DeepSeek)",
       .splits = true,
       .placement = ChunkPlacement::both_ways,
       .orders = stage_by_stage<dualpipe>,
       .bubbles = {{{"(p-2)/(3m+p-2)", [](double p, double m, double) { return (p - 2) / (3 * m + p - 2); }, 2}}},
       .weaving = Weaving::always,
       .searched = Searched::listed,
       .copies = 2},
      {.name = "pipedream",
       .about = "1F1B without flushes: an update after every micro-batch, stage i keeps p - i versions of its weights",
       .orders = stage_by_stage<one_f_one_b>,
       .bubbles = {{{"0", [](double, double, double) { return 0.0; }}}},
       .updates = Updates::every_micro_batch},
      {.name = "pipedream-2bw",
       .about = "the same with an update a step, of at least p micro-batches, and two versions everywhere",
       .orders = stage_by_stage<one_f_one_b>,
       .bubbles = {{{"0", [](double, double, double) { return 0.0; }}}},
       .updates = Updates::every_step},
      {.name = "bpipe",
       .about =
           "1F1B whose early stages leave activations with late ones: at most (p + 2) / 2 on each (Kim et al. 2023)",
       .orders = stage_by_stage<one_f_one_b>,
       .moves = balance_activations},
      {.name = "vocab-1f1b",
       .about =
           "1F1B over stages that share the vocabulary: p + 1 micro-batches in flight (Yeung et al. 2024, algorithm 2)",
       .orders = vocabulary_1f1b<1>,
       .vocabulary_barriers = 1,
       .ends = "1f1b"},
      {.name = "vocab-1f1b-alg1",
       .about = "the same by algorithm 1: less arithmetic, a second barrier, p + 2 micro-batches",
       .orders = vocabulary_1f1b<2>,
       .vocabulary_barriers = 2,
       .ends = "1f1b"},
      {.name = "vocab-zb-v",
       .about = "zb-v over stages that share the vocabulary, algorithm 2: one more micro-batch in flight",
       .chunks = 2,
       .splits = true,
       .placement = ChunkPlacement::v_shaped,
       .orders = zb_v<1>,
       .fits_times = true,
       .vocabulary_barriers = 1,
       .ends = "zb-v"},
      {.name = "vocab-zb-v-alg1",
       .about = "the same by algorithm 1: two more",
       .chunks = 2,
       .splits = true,
       .placement = ChunkPlacement::v_shaped,
       .orders = zb_v<2>,
       .fits_times = true,
       .vocabulary_barriers = 2,
       .ends = "zb-v"},
      {.name = "vocab-v-half",
       .about = "v-half over stages that share the vocabulary, algorithm 2",
       .chunks = 2,
       .splits = true,
       .placement = ChunkPlacement::v_shaped,
       .orders = v_half<1>,
       .fits_times = true,
       .vocabulary_barriers = 1,
       .ends = "v-half"},
      {.name = "vocab-v-half-alg1",
       .about = "the same by algorithm 1",
       .chunks = 2,
       .splits = true,
       .placement = ChunkPlacement::v_shaped,
       .orders = v_half<2>,
       .fits_times = true,
       .vocabulary_barriers = 2,
       .ends = "v-half"},
      {.name = "vocab-v-min",
       .about = "v-min over stages that share the vocabulary, algorithm 2",
       .chunks = 2,
       .splits = true,
       .placement = ChunkPlacement::v_shaped,
       .orders = v_min<1>,
       .fits_times = true,
       .vocabulary_barriers = 1,
       .ends = "v-min"},
      {.name = "vocab-v-min-alg1",
       .about = "the same by algorithm 1",
       .chunks = 2,
       .splits = true,
       .placement = ChunkPlacement::v_shaped,
       .orders = v_min<2>,
       .fits_times = true,
       .vocabulary_barriers = 2,
       .ends = "v-min"},
  };
  return rows;
}

const ScheduleRow* schedule_in_table(std::string_view name) {
  if (name.empty()) name = kPlainSchedule;
  for (const ScheduleRow& row : schedule_rows()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

bool weaves_if_asked(std::string_view schedule, std::int64_t pipeline) {
  const ScheduleRow* row = schedule_in_table(schedule);
  if (row == nullptr) return false;
  return row->weaving == Weaving::asked || (row->weaving == Weaving::asked_without_pipeline && pipeline == 1);
}

const ScheduleRow& find_schedule(std::string_view name) {
  if (const ScheduleRow* row = schedule_in_table(name); row != nullptr) return *row;
  std::vector<std::string_view> names;
  for (const ScheduleRow& row : schedule_rows()) names.push_back(row.name);
  throw Error(fmt::format("strategy.schedule: '{}' is not built yet; known: {}", name, fmt::join(names, ", ")));
}

}  // namespace orrery
