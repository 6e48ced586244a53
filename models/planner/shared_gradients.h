#pragma once

#include "models/planner/step_part.h"

namespace orrery {

// Whether this stage is an end of the pipeline and the other end holds the same embedding table, so that the table's
// gradient is summed over both stages after each has reduced its own.
bool shares_table(const Draft& draft);
// Whether gradients of this stage are summed over ranks of one replica of the model.
bool sums_over_model(const Draft& draft);

// Sums of gradients over ranks within one replica of the model, in addition to the sums over data ranks: norm weights
// under sequence parallelism, norms of heads, key/value heads that several ranks hold, tied embeddings; once a step,
// after the data-parallel reduction, as Megatron-Core's finalize_model_grads() does. Where gradients were reduced to
// shards, only the shards are summed. With the optimizer on the host, gradients are offloaded when these sums are done.
class SharedGradients : public StepPart {
 public:
  using StepPart::StepPart;

  void reduce() override;

 private:
  void offload_buckets();  // buckets that waited for sums over ranks of the model
};

}  // namespace orrery
