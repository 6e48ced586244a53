#pragma once

#include <string>
#include <vector>

#include "models/spec/spec.h"
#include "sim/launch/framework.h"
#include "sim/launch/spec_values.h"

namespace orrery {

// A spec's values as keys and texts; given: only those that the spec itself gives.
SpecValues values_of(const Spec& spec);

// The options that say a spec to a framework, and the keys that it has no option for.
struct Exported {
  std::vector<Setting> options;
  std::vector<std::string> unsaid;
};
Exported export_options(SpecValues values, const Framework& framework);

// The options as a file of the framework's syntax. head: lines of comment (none in JSON, which has no comments).
std::string launch_text(const Exported& exported, Syntax syntax, const std::vector<std::string>& head = {});

}  // namespace orrery
