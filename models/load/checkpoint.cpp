// This file reads strategy.checkpoint: how often weights and optimizer states are written for a restart, and where to.
#include "models/load/reader.h"

namespace orrery {
namespace {

constexpr SpecKey kCheckpointKeys[] = {
    {"every", "steps between checkpoints", "500"},
    {"to", "the disks of each node, or the storage that all nodes share", "storage", "nvme | storage"},
    {"asynchronous", "training goes on once the hosts have a copy, which they write beside it", "false"},
};
constexpr std::string_view kCheckpointTargets[] = {"nvme", "storage"};

}  // namespace

void read_checkpoint(const SpecSection& strategy, Strategy& s) {
  const SpecNode* node = strategy.find("checkpoint");
  if (node == nullptr) return;
  Checkpoint& c = s.checkpoint.emplace();
  c.every = 500;
  const SpecSection map(strategy.reader(), node, "strategy.checkpoint", kCheckpointKeys);
  std::string to = "nvme";
  map.take("every", c.every);
  map.take_word("to", to, kCheckpointTargets);
  map.take("asynchronous", c.asynchronous);
  c.to_storage = to == "storage";
}

Broken checkpoint_rules(const Spec& spec) {
  if (!spec.strategy.checkpoint) return {};
  const Checkpoint& c = *spec.strategy.checkpoint;
  if (c.every < 1 || c.every > 1'000'000'000)
    return broken("checkpoint.every", "strategy.checkpoint.every: {} is not a number of steps of at least 1", c.every);
  const std::optional<Store>& store = c.to_storage ? spec.cluster.storage : store_of(spec.cluster, MemoryTier::nvme);
  const char* key = c.to_storage ? "storage" : "nvme";
  if (!store || store->write_GBps <= 0)
    return broken("checkpoint.to", "strategy.checkpoint: to: {} needs cluster.{}: {{write_GBps: ...}}", key, key);
  return {};
}

}  // namespace orrery
