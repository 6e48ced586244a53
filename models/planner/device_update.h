#pragma once

#include <cstdint>
#include <vector>

#include "models/planner/asynchronous.h"
#include "models/planner/data_parallel.h"
#include "models/planner/post_validation.h"
#include "models/planner/step_part.h"

namespace orrery {

// The planner's class for an optimizer that runs on the device: it unscales gradients, computes their norm, clips and
// updates.
class DeviceUpdate : public StepPart {
 public:
  // validation, asynchronous, gather: the planner's classes that validate updates in the next step, that update while
  // micro-batches are in flight, and that gather updated parameters; each is null if the strategy does not do so.
  DeviceUpdate(Draft& draft, TaskWriter& writer, PostValidation* validation, AsynchronousUpdates* asynchronous,
               ParameterGather* gather)
      : StepPart(draft, writer), validation_(validation), asynchronous_(asynchronous), gather_(gather) {}

  void update() override;

 private:
  std::vector<TaskId> pass(const std::vector<TaskId>& summed, std::uint16_t number);
  void unscale(const std::vector<TaskId>& after);
  bool unscales() const;
  std::vector<TaskId> gradient_norm(const std::vector<TaskId>& after);
  std::vector<TaskId> momentum(const Chunk& chunk, const std::vector<TaskId>& after);
  void update_chunk(const Chunk& chunk, bool last, const std::vector<TaskId>& summed);
  void update_buckets(const Chunk& chunk, Op update, const std::vector<TaskId>& after);

  PostValidation* validation_;
  AsynchronousUpdates* asynchronous_;
  ParameterGather* gather_;
};

}  // namespace orrery
