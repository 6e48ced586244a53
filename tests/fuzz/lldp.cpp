#include <string>

#include "sim/topology/cluster_facts.h"
#include "tests/fuzz/fuzz.h"

// Reads what lldpctl -f json prints, and writes the facts as a spec's cluster.
void orrery::fuzz::read_lldp(std::string_view bytes) { facts_text(lldp_neighbours(std::string(bytes), "topology")); }
