#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "sim/topology/cluster_facts.h"
#include "tests/fuzz/fuzz.h"

// Reads what a cluster's tool printed, from a file in memory because its kind is told after it is opened.
void orrery::fuzz::read_cluster_facts(std::string_view bytes) {
  static const int file = memfd_create("topology", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, bytes.data(), bytes.size(), 0) < 0) std::abort();
  facts_text(orrery::read_cluster_facts({"/proc/self/fd/" + std::to_string(file)}));
}
