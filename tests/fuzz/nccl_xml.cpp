#include <string>

#include "sim/topology/cluster_facts.h"
#include "tests/fuzz/fuzz.h"

// Reads NCCL's dump of a topology or of graphs, and writes the facts as a spec's cluster.
void orrery::fuzz::read_nccl_xml(std::string_view bytes) {
  facts_text(nccl_topology_xml(std::string(bytes), "topology"));
}
