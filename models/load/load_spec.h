#pragma once

#include <string>
#include <vector>

#include "models/spec/spec.h"

namespace orrery {

// Reads a spec (YAML or JSON), applies overrides ("strategy.tensor=4"), fills what is absent, checks the combination.
// Throws Error: "spec.yaml:12: strategy.tensr: unknown key; did you mean tensor?".
Spec load_spec(const std::string& path, const std::vector<std::string>& overrides = {});
Spec parse_spec(const std::string& text, const std::string& path, const std::vector<std::string>& overrides = {});

// A spec's text, read once: text that comes through a pipe can not be read twice. A path that is no file may be a
// recipe's name.
struct SpecText {
  std::string path, text;
};
SpecText read_spec_text(const std::string& path);

// A refusal by a function that knows no file, "cluster.host: missing; ...", with the place where the spec gives that
// key, or its section.
std::string with_place(const Spec& spec, const std::string& refusal);

// The rules that degrees, batch and model must obey; throws Error naming the broken one
// ("tensor: 16 does not divide heads: 40").
void check(const Spec& spec);

}  // namespace orrery
