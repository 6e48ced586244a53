#pragma once

#include <optional>

#include "models/spec/spec.h"

namespace orrery {

// Returns the spec of a step during which an asynchronous checkpoint leaves over the NICs and leaves of the training
// (cluster.storage.path: backend); nullopt if the spec's checkpoints do not. In such a step every NIC also sends its
// part of the checkpoint, at the rate that the storage has for it; a link that both want all of is shared evenly
// (max-min fairness, as Contention has it for two transfers).
std::optional<Spec> while_a_checkpoint_leaves(const Spec& spec);

}  // namespace orrery
