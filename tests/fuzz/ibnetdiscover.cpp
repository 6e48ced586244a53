#include "sim/topology/cluster_facts.h"
#include "tests/fuzz/fuzz.h"

// Reads what ibnetdiscover prints, and writes the facts as a spec's cluster.
void orrery::fuzz::read_ibnetdiscover(std::string_view bytes) { facts_text(ibnetdiscover_links(bytes, "topology")); }
