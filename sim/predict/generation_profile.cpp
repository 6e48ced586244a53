#include "sim/predict/generation_profile.h"

#include <utility>

#include "models/spec/habits.h"

namespace orrery {

Profile generation_profile(const Spec& spec, Profile profile) {
  profile.generates = true;
  const ExpertKernels kernels = spec.software.kernels.expert_kernels;
  if (const ExpertLaw* law = find_expert_law(name_in(kExpertKernels, kernels), spec.cluster.gpu))
    profile.experts = *law;
  return profile;
}

}  // namespace orrery
