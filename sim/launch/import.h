#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/launch/spec_values.h"

namespace orrery {

// An option of a launch file that may change step time or memory, but for which a spec has no key, with the reason.
struct Untranslated {
  std::string from, option, value, why;
};

// The result of an import: the keys of a spec that launch files give, and the options for which a spec has no key.
// remarks: contradictions between files, and decisions that the import has made; each names its file and line.
struct LaunchImport {
  SpecValues values;
  std::vector<Untranslated> not_translated;
  std::vector<std::string> remarks;
  std::string framework;  // name of the framework: "Megatron-LM", or "Megatron-LM, DeepSpeed"
};

struct LaunchText {
  std::string path, text;
};

// Reads the launch files of one run. If several files give the same key, the first one counts, and a contradiction
// becomes a remark. on: the cluster, such as "2xdgx-h100"; "" if none is named. Nothing in a file is executed. Throws
// Error for a file that cannot be read or that belongs to no known framework.
LaunchImport import_launch(const std::vector<LaunchText>& texts, std::string_view on = "");

// A cluster named on the command line: "2xdgx-h100" or "dgx-h100" (one node). Throws Error for an unknown node.
struct ClusterName {
  std::string node;
  std::int64_t nodes = 1;
};
ClusterName cluster_of(std::string_view name);

}  // namespace orrery
