#pragma once

#include "models/planner/step_part.h"

namespace orrery {

// Returns whether this is the first or the last stage and both of these stages hold the embedding table, so that the
// table's gradient is summed over both stages after each stage has reduced it over its data ranks.
bool shares_table(const Draft& draft);
// Returns whether any gradients of this stage are summed over ranks within one replica of the model.
bool sums_over_model(const Draft& draft);

// The planner's class that sums gradients over ranks within one replica of the model, in addition to the sums over data
// ranks: for norm weights under sequence parallelism, for norms of queries and keys, for key/value heads that several
// ranks hold, and for tied embeddings. These sums run once a step, after the data-parallel reduction, as in
// Megatron-Core's finalize_model_grads(). If gradients were reduced to shards, only the shards are summed. With the
// optimizer on the host, gradients are offloaded after these sums.
class SharedGradients : public StepPart {
 public:
  using StepPart::StepPart;

  void reduce() override;

 private:
  void offload_buckets();  // offloads gradient buckets to the host after the sums within a replica
};

}  // namespace orrery
