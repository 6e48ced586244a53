#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/spec/model.h"
#include "models/spec/strategy.h"

namespace orrery {

struct Spec;

// A second model, frozen, that runs forward beside the model that trains, on the same samples. It has weights, but no
// gradients and no optimizer states. It is on the same ranks as the trained model, and cut over them as that one is; or
// on ranks of its own, which come after those of the trained model, and cut over these in its own way.
//   teacher    (workload: distill) The trained model, the student, learns the teacher's distribution over the
//     vocabulary: the loss of a token is cross_entropy * CE + divergence * temperature^2 * KL(teacher || student), with
//     both models' logits divided by the temperature in KL (Hinton et al. 2015, arXiv 1503.02531, section 2). With
//     `features` it also learns the teacher's hidden states behind chosen layers (Romero et al. 2015, arXiv 1412.6550,
//     section 2.2): for each pair of layers, weight times the mean squared difference is added to the loss of a token.
//     If the models' widths differ, a trained projection of the student's hidden states stands in for these.
//   reference  (workload: dpo) A copy of the trained model, the policy, from before the first step. Samples come in
//     pairs, a chosen one and then a rejected one, and the loss of a pair is -log sigmoid(beta (r of the chosen one - r
//     of the rejected one)), where r is the log-probability of a sample by the policy less that by the reference
//     (Rafailov et al. 2023, arXiv 2305.18290, equation 7).
struct SecondModel {
  // Pairs of hidden states, student[i] beside teacher[i], each counted by the number of layers before it: 0 is what the
  // first layer reads, the number of layers what the final norm reads.
  struct Features {
    std::vector<std::int64_t> student, teacher;
    double weight = 1;
  };
  enum class Role : std::uint8_t { teacher, reference };
  Role role = Role::teacher;
  Model model;
  double temperature = 1;
  double divergence = 1;     // weight of the divergence from the teacher in the loss
  double cross_entropy = 0;  // weight of the cross-entropy with the data's tokens in the loss
  double beta = 0.1;
  Features features;
  // whether the weights lie in host memory, from which each unit of them is copied before forward uses it
  bool offload = false;
  std::int64_t gpus = 0;  // number of ranks of its own; 0: it is on those of the model that trains
  // With ranks of its own, how the second model is cut over them; no value without. In the spec that second_spec()
  // returns it is how the model that trains is cut over its ranks.
  std::optional<Strategy> strategy;
  bool alone = false;  // whether the spec is that of the second model's ranks (second_spec())
};

// Returns what a second model is called: "teacher", "reference". Names of its weights begin with this word.
std::string_view name_of(SecondModel::Role role);
// Returns a spec's second model as a spec of its own. On ranks of its own it has its own strategy, and its ranks are
// numbered from 0; else it has the strategy of the model that trains, apart from recomputation and offload, which need
// a backward, and from a given number of layers of each stage.
Spec second_spec(const Spec& spec);
// Returns whether the second model of a spec is on the ranks of the model that trains, so that each of these holds
// parts of both; false if there is no second model, or if it has ranks of its own.
bool has_second_beside(const Spec& spec);
bool has_second_apart(const Spec& spec);  // returns whether the second model of a spec has ranks of its own
// Returns the spec that a rank of the job follows: that of the second model for ranks of its own, else the job's.
Spec spec_of_rank(const Spec& job, std::int64_t rank);
// Returns whether a weight is one of the second model, by its name.
bool of_second_model(const Spec& spec, std::string_view parameter);
// Returns the model that a weight belongs to, by the weight's name: the trained or the second one.
const Model& model_of(const Spec& spec, std::string_view parameter);
// Returns the index of the pair of hidden states (SecondModel::Features) to which those belong that a layer of one of
// the two models reads, or the final norm, whose number is that of the layers; -1 if they belong to none.
std::int64_t feature_of(const Spec& spec, std::int64_t layer, bool of_second);
// Returns whether a student's hidden states are projected before they are compared with its teacher's.
bool projects_features(const Spec& spec);
// Returns the name from which a weight's initial values are computed. A reference begins as a copy of the policy, so
// its weights have the names of the policy's.
std::string initial_name(const Spec& spec, const std::string& parameter);

}  // namespace orrery
