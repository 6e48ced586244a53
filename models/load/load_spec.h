#pragma once

#include <string>
#include <vector>

#include "models/load/tree.h"
#include "models/spec/spec.h"

namespace orrery {

// Reads a spec (YAML or JSON), applies overrides ("strategy.tensor=4"), fills in defaults, and checks the result.
// Throws Error: "spec.yaml:12: strategy.tensr: unknown key; did you mean tensor?".
Spec load_spec(const std::string& path, const std::vector<std::string>& overrides = {});
Spec parse_spec(const std::string& text, const std::string& path, const std::vector<std::string>& overrides = {});

// A spec's text, read once: text that comes through a pipe can not be read twice. A path that is no file may be a
// recipe's name.
struct SpecText {
  std::string path, text;
};
SpecText read_spec_text(const std::string& path);

// The spec's tree with overrides applied, as load_spec() reads it.
SpecNode overridden_tree(const SpecText& spec, const std::vector<std::string>& overrides);

// Adds a place to an error message without one ("cluster.host: missing; ..."): the file and line where the spec gives
// that key, or its section.
std::string with_place(const Spec& spec, const std::string& refusal);

// Checks the rules that degrees, batch and model must obey; throws Error naming the broken one ("tensor: 16 does not
// divide heads: 40").
void check(const Spec& spec);

}  // namespace orrery
