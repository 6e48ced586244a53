#pragma once

#include <string>
#include <vector>

#include "models/load/tree.h"
#include "models/spec/spec.h"

namespace orrery {

// These two functions read a spec (YAML or JSON), one from a file, the other from text: they apply overrides
// ("strategy.tensor=4"), fill in defaults, and check the result. They throw Error: "spec.yaml:12: strategy.tensr:
// unknown key; did you mean tensor?".
Spec load_spec(const std::string& path, const std::vector<std::string>& overrides = {});
Spec parse_spec(const std::string& text, const std::string& path, const std::vector<std::string>& overrides = {});

// The path and contents of a spec file, read once, because a pipe cannot be read twice. A path that is no file may be
// the name of a recipe, a built-in spec of a well-known training run.
struct SpecText {
  std::string path, text;
};
SpecText read_spec_text(const std::string& path);

// Returns the spec's tree with overrides applied, as load_spec() reads it.
SpecNode overridden_tree(const SpecText& spec, const std::vector<std::string>& overrides);

// Adds the file and line to an error message without them ("cluster.host: missing; ..."): those of the key that the
// message names, or else of that key's section.
std::string with_place(const Spec& spec, const std::string& refusal);

// Checks the rules that degrees, batch and model must obey; throws Error naming the broken one ("tensor: 16 does not
// divide heads: 40").
void check(const Spec& spec);

}  // namespace orrery
