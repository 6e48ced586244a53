#include "sim/predict/generation_profile.h"

#include <utility>

#include <fmt/format.h>

#include "models/cost/generation_figures.h"
#include "models/spec/habits.h"

namespace orrery {

Profile generation_profile(const Spec& spec, Profile profile) {
  profile = generating(std::move(profile));
  const ExpertKernels kernels = spec.software.kernels.expert_kernels;
  profile.experts = find_expert_laws(name_in(kExpertKernels, kernels), spec.cluster.gpu);
  profile.narrow_products = find_narrow_product_law(name_in(kExpertKernels, kernels), spec.cluster.gpu);
  if (kernels != ExpertKernels::profile) profile.products = find_product_kernels(spec.cluster.gpu);
  return profile;
}

std::string experts_remark(const Spec& spec, const Profile& profile) {
  const ExpertKernels kernels = spec.software.kernels.expert_kernels;
  if (!spec.model.moe || kernels == ExpertKernels::profile) return "";
  if (law_of(profile.experts, spec.strategy.precision, spec.strategy.weights) != nullptr) return "";
  return fmt::format(
      "software.expert_kernels: no kernels of {} with weights in {} were measured on GPUs like {}; "
      "experts take the time of the profile's products",
      name_in(kExpertKernels, kernels),
      spec.strategy.weights.narrow() ? std::string(name_of(spec.strategy.weights.code))
                                     : std::string(name_of(spec.strategy.precision)),
      spec.cluster.gpu.name);
}

}  // namespace orrery
