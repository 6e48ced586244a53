#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/launch/spec_values.h"

namespace orrery {

// An option that no key of a spec says and that may change step time or memory.
struct Untranslated {
  std::string from, option, value, why;
};

// The keys that launch files state. remarks: contradictions, and what was decided; each names its file and line.
struct LaunchImport {
  SpecValues values;
  std::vector<Untranslated> not_translated;
  std::vector<std::string> remarks;
  std::string framework;  // "Megatron-LM", or "Megatron-LM, DeepSpeed"
};

struct LaunchText {
  std::string path, text;
};

// Reads launch files of one run: of several that state the same key the first counts, and a contradiction is a remark.
// on: the cluster as "2xdgx-h100", "" where none is named. Nothing in a text is executed. Throws Error for a text that
// cannot be read or that is of no known framework.
LaunchImport import_launch(const std::vector<LaunchText>& texts, std::string_view on = "");

// A cluster named on the command line: "2xdgx-h100" or "dgx-h100" (one node). Throws Error for an unknown node.
struct ClusterName {
  std::string node;
  std::int64_t nodes = 1;
};
ClusterName cluster_of(std::string_view name);

}  // namespace orrery
