#pragma once

#include <string>
#include <vector>

#include "models/spec/spec.h"
#include "sim/launch/framework.h"
#include "sim/launch/spec_values.h"

namespace orrery {

// All keys of a spec, with their values as texts.
SpecValues values_of(const Spec& spec);

// A spec translated to a framework's options. unsaid: what the framework has no option for: keys that the spec itself
// gives, and keys or components of a model that a configuration file or built-in model describes.
struct Exported {
  std::vector<Setting> options;
  std::vector<std::string> unsaid;
};
Exported export_options(SpecValues values, const Framework& framework);

// The text of a launch file with the exported options, in the framework's syntax. head: comment lines at the beginning
// (left out in JSON, which has no comments).
std::string launch_text(const Exported& exported, Syntax syntax, const std::vector<std::string>& head = {});

}  // namespace orrery
