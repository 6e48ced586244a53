#pragma once

#include <string>

#include "models/spec/spec.h"

namespace orrery {

// Returns a remark for a spec that generates text whose passes over the prompts compute more tokens than its stack
// computes in one by default, so that its first tokens come later and working memory takes more than there; "" else.
std::string pass_remark(const Spec& spec);

}  // namespace orrery
