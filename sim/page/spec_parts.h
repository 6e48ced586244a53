#pragma once

#include <string>
#include <vector>

#include "models/load/load_spec.h"
#include "models/spec/spec.h"

namespace orrery {

// The origin of a page on one spec, which stands beside its prediction. spec_text: the spec as the user wrote it;
// overrides: values of
// --set; chosen: lines on what was chosen for the user; command, version: as in Page (document.h).
struct SpecNotes {
  SpecText spec_text;
  std::vector<std::string> overrides, chosen;
  std::string command, version;
};

// Parts that every page on one spec ends with: what was decided for the user, and the spec itself with all its values.
// A very long spec is cut, which the page says.
std::string defaults_part(const Spec& spec, const SpecNotes& notes);
std::string spec_part(const Spec& spec, const SpecNotes& notes);
// The machine, with lines on what it costs (none: nothing is said).
std::string machine_part(const Spec& spec, const std::vector<std::string>& prices);

}  // namespace orrery
