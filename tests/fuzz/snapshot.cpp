#include "exec/host/snapshot.h"

#include "tests/exec/jobs.h"
#include "tests/fuzz/fuzz.h"

// Reads snapshots of a server, which keeps the states of a tiny model, and of a worker, whose snapshot has only losses.
void orrery::fuzz::read_snapshot(std::string_view bytes) {
  static const test::Job job = test::tiny_job(
      "data: 2, sharding: parameter-server, parameter_server: {servers: 2, snapshot_every: 5}, global_batch: 2");
  for (const std::int64_t number : {0, 2}) {
    const Rank rank = job.rank(number);
    CachingMemory memory(host_segments());
    Buffers buffers(rank, memory);
    try {
      parse_snapshot(bytes, "snapshot_2.10", rank, buffers, 10);
    } catch (const Error&) {
      if (number == 2) throw;
    }
  }
}
