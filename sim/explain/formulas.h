#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/spec.h"
#include "sim/report/report.h"

namespace orrery {

// Textbook formulas with the numbers of a spec, to compare with the plan and its simulation. They are only printed; no
// other figure is computed from them.

// Bytes of model states per parameter (ZeRO: Rajbhandari et al. 2020, section 3), and which states are sharded: of
// those a rank holds 1/shards.
struct StateFormula {
  Bytes parameters = 0, gradients = 0, optimizer = 0;  // bytes per parameter, on the device or offloaded
  Bytes whole = 0;  // bytes of the optimizer that every rank keeps for all parameters, unsharded
  Bytes whole_gradients =
      0;  // bytes of gradients that every rank keeps whole until they are reduced, beside its shards
  // Bytes per parameter that only some have: Muon's second moments, those without which Adafactor does; scales of
  // eight-bit moments
  double some = 0;
  Bytes copies = 0;  // bytes of copies of gradients that the host's update reads, sharded as the optimizer
  bool shards_parameters = false, shards_gradients = false, shards_optimizer = false;
  std::int64_t shards = 1;

  double bytes(double elements) const;
};
// States of one kind of weights: those of experts (copies: expert_data), those of token embeddings that the first and
// last stage reduce together (embedding), or all others (data).
StateFormula state_formula(const Spec& spec, const Plan& plan, Dimension copies = Dimension::data);
// The same for one class of ranks, where not all ranks update: parameter servers hold shards of all states, ranks that
// update nothing hold no optimizer states.
StateFormula of_slot(StateFormula f, const Plan& plan, std::size_t slot);
std::string term(Bytes per_parameter, bool sharded);  // "12Ψ/N"
std::string text_of(const StateFormula& f);           // "6Ψ + 12Ψ/N"

// Size of the group that the first rank of a class of ranks is in.
std::int64_t group_size(const Plan& plan, Dimension d, std::size_t slot = 0);

// Elements of weights that a class of ranks holds before sharding, by the dimension whose ranks have copies of them
// (copies, as in state_formula). again: only weights that are gathered a second time, for backward. frozen: those that
// do not train, else those that do.
std::int64_t elements_of(const Plan& plan, std::size_t slot, Dimension copies = Dimension::data, bool again = false,
                         bool frozen = false);
// Bytes of a class's weights that do not train.
double frozen_bytes(const Spec& spec, const Plan& plan, std::size_t slot);
Bytes states_in_plan(const Plan& plan,
                     std::size_t slot);  // bytes of the plan's flat buffers, without copies beside the states

// Bytes that leave one GPU per step, averaged over ranks.
struct Volume {
  std::string what;      // "data", "tensor", "pipeline"
  std::string formula;   // "(Ψ·4 + Ψ·2)·(N-1)/N"
  std::string numbers;   // "Ψ = 1.09e9, N = 8"
  double bytes = 0;      // bytes by the formula
  double simulated = 0;  // bytes in the report
};
std::vector<Volume> volumes(const Spec& spec, const Plan& plan, const Report& report);

// Idle share of a pipeline of equal stages without transfers, launches and optimizer.
struct Bubble {
  std::string formula;  // "(p-1)/(m+p-1)"
  double share = 0;
};
// The bubble of a schedule; nullopt for schedules without a closed form here. post_update_validation: for steps that
// begin on each stage as soon as the stage has ended the step before (software.post_update_validation).
std::optional<Bubble> bubble_formula(const Strategy& strategy, bool post_update_validation = false);

}  // namespace orrery
