#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "models/spec/model.h"

namespace orrery {

struct Spec;

// A second model, frozen, that runs forward beside the model that trains, on the same ranks and with the same
// micro-batches. It has weights, but no gradients and no optimizer states, and is cut over the ranks as the trained
// model is.
//   teacher    (workload: distill) The trained model, the student, learns the teacher's distribution over the
//     vocabulary: the loss of a token is cross_entropy * CE + divergence * temperature^2 * KL(teacher || student), with
//     both models' logits divided by the temperature in KL (Hinton et al. 2015, arXiv 1503.02531, section 2).
//   reference  (workload: dpo) A copy of the trained model, the policy, from before the first step. Samples come in
//     pairs, a chosen one and then a rejected one, and the loss of a pair is -log sigmoid(beta (r of the chosen one - r
//     of the rejected one)), where r is the log-probability of a sample by the policy less that by the reference
//     (Rafailov et al. 2023, arXiv 2305.18290, equation 7).
struct SecondModel {
  enum class Role : std::uint8_t { teacher, reference };
  Role role = Role::teacher;
  Model model;
  double temperature = 1;
  double divergence = 1;     // weight of the divergence from the teacher in the loss
  double cross_entropy = 0;  // weight of the cross-entropy with the data's tokens in the loss
  double beta = 0.1;
};

// Returns what a second model is called: "teacher", "reference". Names of its weights begin with this word.
std::string_view name_of(SecondModel::Role role);
// Returns a spec's second model as a spec of its own, with the strategy of the model that trains, apart from
// recomputation and offload, which need a backward, and from a given number of layers of each stage.
Spec second_spec(const Spec& spec);
// Returns whether a weight is one of the second model, by its name.
bool of_second_model(const Spec& spec, std::string_view parameter);
// Returns the model that a weight belongs to, by the weight's name: the trained or the second one.
const Model& model_of(const Spec& spec, std::string_view parameter);
// Returns the name from which a weight's initial values are computed. A reference begins as a copy of the policy, so
// its weights have the names of the policy's.
std::string initial_name(const Spec& spec, const std::string& parameter);

}  // namespace orrery
