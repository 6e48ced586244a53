#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// One entry of a rank's pipeline order: run this phase of this chunk for this micro-batch.
struct Action {
  Phase phase = Phase::forward;
  std::int32_t chunk = 0;
  std::int32_t micro_batch = 0;
  // Interleaved with the next action: the host issues ops of both in turn, switching at each transfer
  bool woven = false;
};

// The times that the passes of a micro-batch take on one stage, in any unit: forward, and in backward the input
// gradient and the weight gradient. A whole backward takes the sum of the latter two.
struct PhaseTimes {
  std::int64_t forward = 1, input = 1, weight = 1;
};

// The shape that a schedule is asked for: p stages, m micro-batches, v chunks (virtual stages) a stage. Orders that are
// found by search use the times of the virtual stages; empty: all ones. woven: in the steady phase, 1F1B and
// interleaved schedules interleave each forward op by op with the backward that follows it.
struct ScheduleShape {
  std::int64_t stages = 1;
  std::int64_t micro_batches = 1;
  std::int64_t chunks = 1;
  std::vector<PhaseTimes> times;
  bool woven = false;
  std::int64_t group = 0;          // micro-batches that pass through a chunk before the next chunk's turn; 0: p
  std::int64_t extra_warm_up = 0;  // interleaved orders: additional forwards before the first backward
};

// A move of a micro-batch's activations to another stage and back (BPipe). leaves, returns: they are sent after action
// number `leaves` of their own stage and are back before number `returns`, sent during the action before that.
struct Eviction {
  std::int32_t stage = 0, partner = 0, micro_batch = 0;
  std::int32_t leaves = 0, returns = 0;
};

// The order of actions of every stage, and where each virtual stage lies: virtual stage k (in model order) is chunk
// chunk_of[k] of stage stage_of[k]. A second copy of the model has entries of its own, after those of the first.
struct Schedule {
  std::vector<std::vector<Action>> order;
  std::vector<std::int32_t> stage_of;
  std::vector<std::int32_t> chunk_of;
  std::int64_t copies = 1;
  std::vector<Eviction> moves = {};
  // For a vocabulary that all stages hold a part of: the chunks of every stage that run before the first virtual stage
  // (token lookups), and after the last (logits). -1: the first and the last virtual stage hold all of it.
  std::int32_t input_chunk = -1, output_chunk = -1;
  std::int64_t barriers = 0;  // barriers at which all stages meet between a micro-batch's logits and their gradients

  bool spreads_vocabulary() const { return input_chunk >= 0; }

  std::int64_t virtual_stages() const { return static_cast<std::int64_t>(stage_of.size()) / copies; }
};

// The placement of virtual stages: round-robin over the stages (Megatron-LM's interleaving), or there and back: the
// first and the last on stage 0, those in the middle on the last stage (a V, for two a stage). both_ways: a copy of the
// model from the first stage to the last, and one from the last to the first; micro-batches alternate between them.
// With more copies half run each way, and the copies of one direction begin at evenly spaced stages.
enum class ChunkPlacement : std::uint8_t { in_turn, v_shaped, both_ways };

// When weights are updated: once a step, when the pipeline has been drained; or while micro-batches are in flight, each
// of which keeps the weights that its forward used (PipeDream's weight stashing), after every micro-batch or after a
// step's micro-batches.
enum class Updates : std::uint8_t { flush, every_micro_batch, every_step };

// Whether forwards are interleaved op by op with the backwards that follow them: never; if the spec asks for it
// (strategy.overlap.micro_batches) and has no pipeline; if the spec asks for it; or always.
enum class Weaving : std::uint8_t { never, asked_without_pipeline, asked, always };

// How a search for the best strategy treats a schedule: as one of the first that it tries; like any other; or only if
// the spec lists it.
enum class Searched : std::uint8_t { first, any, listed };

// The idle share (bubble) of a step of p equal stages, m micro-batches and v chunks a stage in closed form, without
// transfers, launches and optimizer. No formula is known if `share` is null.
struct BubbleForm {
  enum class Holds : std::uint8_t { always, with_barrier, without_barrier };  // a barrier ends each step, or none

  std::string_view formula = "";  // "(p-1)/(m+p-1)"
  double (*share)(double p, double m, double v) = nullptr;
  std::int64_t least_rounds = 0;  // the formula holds from so many micro-batches a stage on
  bool of_least = false;          // the formula holds only for exactly that number of micro-batches
  std::int64_t most_stages = 0;   // with more stages the order is longer than the formula says; 0: no such limit
  Holds holds = Holds::always;
};

// A pipeline schedule: a row of the table in table.cpp.
struct ScheduleRow {
  std::string_view name;
  std::string_view about;
  std::int64_t chunks = 1;  // virtual stages a stage; 0: as many as are asked for
  bool splits = false;      // runs weight gradients separately from the rest of backward
  ChunkPlacement placement = ChunkPlacement::in_turn;
  std::vector<std::vector<Action>> (*orders)(const ScheduleShape& shape) = nullptr;
  // Number of forwards that a stage issues before its first backward, and so of micro-batches in flight; null: no
  // closed form.
  std::int64_t (*in_flight)(std::int64_t stages, std::int64_t stage, std::int64_t micro_batches) = nullptr;
  std::array<BubbleForm, 2> bubbles = {};
  bool fits_times = false;    // the order is searched by the times of its phases (ScheduleShape::times)
  bool takes_turns = false;   // chunks take turns of ScheduleShape::group micro-batches
  bool plans_stages = false;  // DAPPLE's planner assigns layers to stages
  // The warm-up is made for 2p - 1 micro-batches, and shortens steps of at least that many
  bool warms_up_twice = false;
  Weaving weaving = Weaving::never;
  Searched searched = Searched::any;
  Updates updates = Updates::flush;
  // none: no activations move
  std::vector<Eviction> (*moves)(const std::vector<std::vector<Action>>& orders) = nullptr;
  std::int64_t vocabulary_barriers = 0;  // > 0: all stages hold a part of the vocabulary (Schedule::barriers)
  // If the vocabulary is shared: the same schedule with the vocabulary at the ends of the pipeline
  std::string_view ends = "";
  std::int64_t copies = 1;  // copies of the model; several run in both directions
};

// The default schedules where none is named: for one chunk a stage, for a split backward, for several chunks.
inline constexpr std::string_view kPlainSchedule = "1f1b", kPlainSplitSchedule = "zb-h1",
                                  kChunkedSchedule = "interleaved";

const std::vector<ScheduleRow>& schedule_rows();
const ScheduleRow& find_schedule(std::string_view name);      // throws Error listing the known names
const ScheduleRow* schedule_in_table(std::string_view name);  // null: an order from a file; "": the plain one
// Whether a schedule interleaves forwards and backwards op by op if a spec asks for it.
bool weaves_if_asked(std::string_view schedule, std::int64_t pipeline);
// The placement of virtual stages, without orders.
Schedule place_chunks(ChunkPlacement placement, const ScheduleShape& shape, std::int64_t copies = 2);
Schedule place_chunks(const ScheduleRow& row, const ScheduleShape& shape);  // also places parts of the vocabulary
Schedule make_schedule(std::string_view name, const ScheduleShape& shape);

// The step in stages from virtual stage `boundary` to the next: 1 forward, -1 back, 0 for the same stage. In a ring of
// two stages both neighbours are the same and the step is 1.
std::int64_t hop(const Schedule& schedule, std::size_t boundary);

// Whether the first and the last virtual stage lie on one stage, even if they belong to two copies of the model.
bool ends_meet(const Schedule& schedule);

// How many copies of a stage's weights lie on the stages of one pipeline: if the model runs in both directions a
// stage's mirror image holds them too, and with more copies also the stages at which other copies begin.
std::int64_t model_copies(std::string_view schedule);
inline bool runs_both_ways(std::string_view schedule) { return model_copies(schedule) > 1; }

bool splits_backward(const Schedule& schedule);

// Whether, with two copies of a model, each stage runs the same order as its mirror image with the chunks exchanged:
// both stages then need the same weights in the same order.
bool is_mirrored(const Schedule& schedule);

// Whether every stage holds a part of the vocabulary.
bool spreads_vocabulary(std::string_view schedule);

}  // namespace orrery
