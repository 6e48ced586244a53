#pragma once

#include <string>
#include <vector>

#include "models/spec/spec.h"
#include "sim/launch/framework.h"
#include "sim/launch/spec_values.h"

namespace orrery {

// The keys and values of a spec, as texts.
SpecValues values_of(const Spec& spec);

// The options of a framework that express a spec (options), and the spec's keys for which the framework has no option
// (unsaid).
struct Exported {
  std::vector<Setting> options;
  std::vector<std::string> unsaid;
};
Exported export_options(SpecValues values, const Framework& framework);

// The options as a launch file in the framework's syntax. head: lines for a comment at its beginning (not written in
// JSON, which has no comments).
std::string launch_text(const Exported& exported, Syntax syntax, const std::vector<std::string>& head = {});

}  // namespace orrery
