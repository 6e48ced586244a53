#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// An action of a pipeline stage: one phase (forward, backward, ...) of one of its chunks (virtual stages) for one
// micro-batch.
struct Action {
  Phase phase = Phase::forward;
  std::int32_t chunk = 0;
  std::int32_t micro_batch = 0;
  // whether the action is overlapped with the next one: the host issues ops of both in turn, switching at each transfer
  bool woven = false;
};

// The times that the passes of a micro-batch take on one stage, in any unit: forward, and in backward the input
// gradient and the weight gradient. A backward that is not split takes the sum of both gradients' times.
struct PhaseTimes {
  std::int64_t forward = 1, input = 1, weight = 1;
};

// The shape of a pipeline to make a schedule for: p stages, m micro-batches, v chunks (virtual stages) a stage. Orders
// that are found by search use `times`, one entry for each virtual stage; empty: all times are one. woven: in the
// steady phase, 1F1B and interleaved schedules overlap each forward, op by op, with the backward that follows it.
struct ScheduleShape {
  std::int64_t stages = 1;
  std::int64_t micro_batches = 1;
  std::int64_t chunks = 1;
  std::vector<PhaseTimes> times;
  bool woven = false;
  // number of micro-batches that pass through a chunk before the stage turns to its next chunk; 0: as many as there are
  // stages
  std::int64_t group = 0;
  std::int64_t extra_warm_up = 0;  // interleaved orders: number of additional forwards before the first backward
};

// A move of one micro-batch's activations from a stage to its partner and back (BPipe). leaves: number of the stage's
// action after which the activations are sent away; returns: number of the action that needs them again. They are sent
// back while the stage runs action number returns - 1.
struct Eviction {
  std::int32_t stage = 0, partner = 0, micro_batch = 0;
  std::int32_t leaves = 0, returns = 0;
};

// A pipeline schedule: the order of actions of every stage, and the stage and chunk of each virtual stage: virtual
// stage k (in model order) is chunk chunk_of[k] of stage stage_of[k]. A second copy of the model has entries of its
// own, after those of the first copy.
struct Schedule {
  std::vector<std::vector<Action>> order;
  std::vector<std::int32_t> stage_of;
  std::vector<std::int32_t> chunk_of;
  std::int64_t copies = 1;
  std::vector<Eviction> moves = {};
  // Two chunks that every stage has if all stages share the vocabulary: the chunk of token lookups, which runs before
  // the first virtual stage, and the chunk of logits, which runs after the last. -1: the vocabulary is not shared; the
  // first virtual stage has the complete embedding and the last one the complete output.
  std::int32_t input_chunk = -1, output_chunk = -1;
  // for a vocabulary that all stages share: number of times that a micro-batch must wait for all stages (barriers)
  // between its logits and the backward of the last virtual stage
  std::int64_t barriers = 0;

  bool spreads_vocabulary() const { return input_chunk >= 0; }

  std::int64_t virtual_stages() const { return static_cast<std::int64_t>(stage_of.size()) / copies; }
};

// The placement of virtual stages on the stages of a pipeline. in_turn: round-robin over the stages (Megatron-LM's
// interleaving). v_shaped: there and back, so that the first and the last virtual stage lie on stage 0 and those in the
// middle on the last stage (a V, for two virtual stages a stage). both_ways: one copy of the model from the first stage
// to the last, and one from the last to the first; micro-batches alternate between the copies. With more copies half of
// them run in each direction, and the copies of one direction begin at evenly spaced stages.
enum class ChunkPlacement : std::uint8_t { in_turn, v_shaped, both_ways };

// Updates says when weights are updated. flush: once a step, when the pipeline has been drained. every_micro_batch,
// every_step: while micro-batches are in flight, after every micro-batch or after each step's micro-batches; every
// micro-batch in flight then keeps the version of the weights that its forward used (PipeDream's weight stashing).
enum class Updates : std::uint8_t { flush, every_micro_batch, every_step };

// Weaving says whether a schedule overlaps forwards op by op with the backwards that follow them. never;
// asked_without_pipeline: if the spec sets strategy.overlap.micro_batches and has no pipeline; asked: if the spec sets
// that key; always.
enum class Weaving : std::uint8_t { never, asked_without_pipeline, asked, always };

// Searched says how a search for the best strategy treats a schedule. first: the schedule is among the first ones
// tried; any: like most schedules; listed: it is tried only if the spec lists it.
enum class Searched : std::uint8_t { first, any, listed };

// The idle fraction (bubble) of a step with p equal stages, m micro-batches and v chunks a stage in closed form,
// without transfers, launches and optimizer. If `share` is null, no formula is known.
struct BubbleFormula {
  // Holds says whether the formula of the bubble holds with a barrier at the end of each step, without one, or in both
  // cases.
  enum class Holds : std::uint8_t { always, with_barrier, without_barrier };

  // the bubble fraction as text, a formula of p stages and m micro-batches: "(p-1)/(m+p-1)"
  std::string_view formula = "";
  double (*share)(double p, double m, double v) = nullptr;
  std::int64_t least_rounds = 0;  // the bubble's formula holds if there are at least this many times p micro-batches
  // whether the formula holds only if the number of micro-batches is exactly least_rounds times p
  bool exactly_least = false;
  // largest number of stages for which the formula holds, as longer pipelines take longer than the formula says; 0: no
  // limit
  std::int64_t most_stages = 0;
  Holds holds = Holds::always;
};

// A pipeline schedule: one row of the table in table.cpp.
struct ScheduleRow {
  std::string_view name;
  std::string_view about;
  std::int64_t chunks = 1;  // number of virtual stages on each stage; 0: as many as the strategy asks for
  bool splits = false;      // whether the schedule runs weight gradients separately from the rest of backward
  ChunkPlacement placement = ChunkPlacement::in_turn;
  std::vector<std::vector<Action>> (*orders)(const ScheduleShape& shape) = nullptr;
  // a function that returns the number of forwards that a stage issues before its first backward, which is the number
  // of micro-batches in flight; null: no closed form is known
  std::int64_t (*in_flight)(std::int64_t stages, std::int64_t stage, std::int64_t micro_batches) = nullptr;
  std::array<BubbleFormula, 2> bubbles = {};
  // whether the order is found by a search that uses the times of its passes (ScheduleShape::times)
  bool fits_times = false;
  // whether each chunk runs ScheduleShape::group micro-batches before the stage turns to its next chunk
  bool takes_turns = false;
  bool plans_stages = false;  // whether DAPPLE's planner assigns layers to stages (models/partition/dapple.h)
  // whether the schedule's longer warm-up fills the bubble only if there are at least 2p - 1 micro-batches (p stages);
  // with fewer it merely delays the first gradients
  bool warms_up_twice = false;
  Weaving weaving = Weaving::never;
  Searched searched = Searched::any;
  Updates updates = Updates::flush;
  // a function that returns the moves of activations between stages; null: no activations move
  std::vector<Eviction> (*moves)(const std::vector<std::vector<Action>>& orders) = nullptr;
  // number of barriers for a vocabulary that all stages share (Schedule::barriers); 0: the stages do not share it
  std::int64_t vocabulary_barriers = 0;
  // If the vocabulary is shared: name of the same schedule with embedding on the first and output on the last stage
  std::string_view ends = "";
  std::int64_t copies = 1;  // number of copies of the model; several copies run in both directions
};

// The names of the schedules that are used if the spec names none: for one chunk a stage, for a split backward, and for
// several chunks a stage.
inline constexpr std::string_view kPlainSchedule = "1f1b", kPlainSplitSchedule = "zb-h1",
                                  kChunkedSchedule = "interleaved";

const std::vector<ScheduleRow>& schedule_rows();
const ScheduleRow& find_schedule(std::string_view name);  // throws Error listing the known names
// Returns the row of a schedule; null if the order comes from a file; the name "" stands for kPlainSchedule.
const ScheduleRow* schedule_in_table(std::string_view name);
// Returns whether a schedule overlaps forwards and backwards op by op if a spec asks for it (Weaving); `pipeline` is
// the number of pipeline stages.
bool weaves_if_asked(std::string_view schedule, std::int64_t pipeline);
// Assigns all virtual stages to stages and chunks; the schedule that it returns has no orders of actions.
Schedule place_chunks(ChunkPlacement placement, const ScheduleShape& shape, std::int64_t copies = 2);
// Assigns all virtual stages to stages and chunks as a row of the schedule table says, and adds the chunks of a shared
// vocabulary.
Schedule place_chunks(const ScheduleRow& row, const ScheduleShape& shape);
Schedule make_schedule(std::string_view name, const ScheduleShape& shape);

// Returns how many stages a micro-batch moves on from virtual stage `boundary` to the next one: 1 to the next stage, -1
// to the stage before, 0 if both lie on one stage. In a ring of two stages both neighbours are the same stage, and the
// result is 1.
std::int64_t hop(const Schedule& schedule, std::size_t boundary);

// Returns whether the first and the last virtual stage lie on one stage, even if they belong to two copies of the
// model.
bool ends_meet(const Schedule& schedule);

// Returns the number of copies of the model that a schedule runs over the stages of one pipeline, which is also the
// number of stages that hold the same weights. With two copies, which run in opposite directions, these are stage i and
// its mirror image, stage p - 1 - i.
std::int64_t model_copies(std::string_view schedule);
inline bool runs_both_ways(std::string_view schedule) { return model_copies(schedule) > 1; }

bool splits_backward(const Schedule& schedule);

// Returns whether, with two copies of a model, each stage runs the same order as its mirror image (stage p - 1 - i for
// stage i) with the chunks exchanged. Both stages then need the same weights in the same order.
bool is_mirrored(const Schedule& schedule);

// Returns whether, in a schedule, every pipeline stage holds a part of the vocabulary.
bool spreads_vocabulary(std::string_view schedule);

}  // namespace orrery
