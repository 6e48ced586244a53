#include "sim/topology/cluster_facts.h"
#include "tests/fuzz/fuzz.h"

// Reads Slurm's topology.conf, and writes the facts as a spec's cluster.
void orrery::fuzz::read_slurm_topology(std::string_view bytes) { facts_text(slurm_topology(bytes, "topology")); }
