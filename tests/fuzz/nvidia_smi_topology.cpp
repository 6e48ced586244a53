#include "sim/topology/cluster_facts.h"
#include "tests/fuzz/fuzz.h"

// Reads what nvidia-smi topo -m prints, and writes the facts as a spec's cluster.
void orrery::fuzz::read_nvidia_smi_topology(std::string_view bytes) {
  facts_text(nvidia_smi_topology(bytes, "topology"));
}
