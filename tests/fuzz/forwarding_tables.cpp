#include "sim/topology/cluster_facts.h"
#include "tests/fuzz/fuzz.h"

// Reads what dump_lfts.sh prints, and writes the facts as a spec's cluster.
void orrery::fuzz::read_forwarding_tables(std::string_view bytes) { facts_text(forwarding_tables(bytes, "topology")); }
