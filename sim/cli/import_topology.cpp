// `orrery import-topology`: what a cluster's own tools print about its nodes and switches, as a spec's `cluster`.
#include <fmt/format.h>

#include "models/base/output_file.h"
#include "sim/cli/commands.h"
#include "sim/topology/cluster_facts.h"

namespace orrery {

Outcome import_topology_command(const ImportTopologyOptions& options) {
  const std::string text = facts_text(read_cluster_facts(options.files));
  if (options.out.empty()) return {.text = text, .verbatim = true};
  OutputFile file(options.out);
  file.write(text);
  file.commit();
  return {fmt::format("{} is written\n", options.out)};
}

}  // namespace orrery
