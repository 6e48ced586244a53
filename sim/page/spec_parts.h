#pragma once

#include <string>
#include <vector>

#include "models/load/load_spec.h"
#include "models/spec/spec.h"

namespace orrery {

// The origin of a page that predicts one spec. spec_text: the spec as the user wrote it; overrides: values of --set;
// chosen: lines on what was chosen for the user; command, version: as in Page (document.h).
struct SpecNotes {
  SpecText spec_text;
  std::vector<std::string> overrides, chosen;
  std::string command, version;
};

// The last parts of every page on one spec: the values that were chosen for the user (defaults_part), and the spec
// itself with all its values (spec_part). A very long spec is cut, which the page says.
std::string defaults_part(const Spec& spec, const SpecNotes& notes);
std::string spec_part(const Spec& spec, const SpecNotes& notes);
// The part of a page that describes the machine. prices: lines on what the machine costs; empty: its cost is not
// mentioned.
std::string machine_part(const Spec& spec, const std::vector<std::string>& prices);

}  // namespace orrery
