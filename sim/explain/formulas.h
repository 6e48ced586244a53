#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/spec.h"
#include "sim/report/report.h"

namespace orrery {

// Textbook formulas with the numbers of a spec, printed for comparison with the plan and its simulation. No other
// figure is computed from them.

// Bytes of model states (parameters, gradients, optimizer states) per parameter (ZeRO: Rajbhandari et al. 2020, section
// 3), and which of the states are sharded; a rank holds 1/shards of a sharded state.
struct StateFormula {
  Bytes parameters = 0, gradients = 0, optimizer = 0;  // bytes of each state per parameter, on the device or offloaded
  Bytes whole = 0;  // bytes of optimizer states per parameter that each rank keeps unsharded
  // Bytes per parameter of gradients that every rank keeps unsharded until they are reduced, besides its shards.
  Bytes whole_gradients = 0;
  // Mean bytes per parameter of states that are not one number for each parameter: Muon's second moments, scales of
  // eight-bit moments, and the second copy of the weights in each node (ZeRO++).
  double some = 0;
  Bytes copies = 0;  // bytes of gradient copies for an update on the host, sharded like the optimizer states
  bool shards_parameters = false, shards_gradients = false, shards_optimizer = false;
  std::int64_t shards = 1;

  double bytes(double elements) const;
};
// The formula for the model states of one kind of weights. copies: the dimension of parallelism over whose ranks these
// weights are replicated or sharded: expert_data for weights of experts; embedding for token embeddings whose gradients
// the first and last stage reduce together; data for all other weights. slot: the class of ranks that hold the weights;
// with Muon a parameter's mean bytes depend on how many of a stage's weights are matrices.
StateFormula state_formula(const Spec& spec, const Plan& plan, Dimension copies = Dimension::data,
                           std::size_t slot = 0);
// Adapts the formula for model states to one class of ranks, because not all ranks update weights: parameter servers
// hold shards of all states, and ranks that update nothing hold no optimizer states.
StateFormula of_slot(StateFormula f, const Plan& plan, std::size_t slot);
std::string term(Bytes per_parameter, bool sharded);  // the bytes of one model state on a rank as text: "12Ψ/N"
std::string text_of(const StateFormula& f);           // the formula for all model states: "6Ψ + 12Ψ/N"

// Number of ranks in a group of dimension d. slot: the class of ranks whose group is meant.
std::int64_t group_size(const Plan& plan, Dimension d, std::size_t slot = 0);

// Number of trained weights (elements) of one kind (copies, as in state_formula) that a class of ranks holds before
// sharding. again: counts only weights that are gathered a second time, for backward.
std::int64_t elements_of(const Plan& plan, std::size_t slot, Dimension copies = Dimension::data, bool again = false);
// Number of trained weights (elements) of one kind (copies, as in state_formula) that are in matrices of layers, which
// the Muon optimizer orthogonalizes.
std::int64_t layer_matrices(const Plan& plan, std::size_t slot, Dimension copies);
// Bytes, in the number format in which they are gathered, of the frozen (not trained) weights that a class of ranks
// holds before sharding; copies and again as in elements_of().
Bytes frozen_gathers(const Spec& spec, const Plan& plan, std::size_t slot, Dimension copies, bool again);
// Bytes of the frozen (not trained) weights on a rank of a class.
double frozen_bytes(const Spec& spec, const Plan& plan, std::size_t slot);
// Bytes of model states (parameters, gradients, optimizer states) that a class of ranks has in the plan, without
// temporary buffers.
Bytes states_in_plan(const Plan& plan, std::size_t slot);

// The bytes that one GPU sends per step in transfers of one kind, averaged over ranks: by a textbook formula, and as
// simulated.
struct Volume {
  std::string what;      // which transfers: "data", "tensor", "pipeline"
  std::string formula;   // formula of the bytes as text: "(Ψ·4 + Ψ·2)·(N-1)/N"
  std::string numbers;   // values of the formula's variables as text: "Ψ = 1.09e9, N = 8"
  double bytes = 0;      // bytes that the formula yields
  double simulated = 0;  // bytes of the same transfers in the report of the simulated step
};
std::vector<Volume> volumes(const Spec& spec, const Plan& plan, const Report& report);

// The share of a step for which a pipeline with equal stages idles, if transfers, launches and the optimizer take no
// time.
struct Bubble {
  std::string formula;  // the idle share, with p stages and m micro-batches: "(p-1)/(m+p-1)"
  double share = 0;
};
// The bubble of a schedule; nullopt for schedules for which no closed formula is listed here. post_update_validation:
// whether each stage begins a step as soon as it has ended the previous one (software.post_update_validation).
std::optional<Bubble> bubble_formula(const Strategy& strategy, bool post_update_validation = false);

}  // namespace orrery
