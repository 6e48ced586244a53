#pragma once

#include "models/planner/step_part.h"

namespace orrery {

// Whether this stage is an end of the pipeline whose embedding table the other end holds too, so that the table's
// gradient is summed over both stages after each has reduced its own.
bool shares_table(const Draft& draft);
// Whether gradients of this stage are summed over ranks of one replica of the model.
bool sums_over_model(const Draft& draft);

// Gradients that several ranks of one replica of the model hold a part of, beside the sums over data ranks: norm
// weights under sequence parallelism, norms of heads, key/value heads that several ranks hold, tied embeddings; once a
// step, after the data-parallel reduction, as Megatron-Core's finalize_model_grads() does. Where gradients were reduced
// to shards, only the shards are summed. Where the optimizer is on the host, gradients leave the device when these sums
// are done.
class SharedGradients : public StepPart {
 public:
  using StepPart::StepPart;

  void reduce() override;

 private:
  void offload_buckets();  // those that waited for sums over ranks of the model
};

}  // namespace orrery
