#include "models/planner/plan_builder.h"

#include <algorithm>

namespace orrery {

PlanBuilder::PlanBuilder(Draft& draft, TaskWriter& writer, PostValidation* validation)
    : StepPart(draft, writer), validation_(validation) {}

void PlanBuilder::before_block(const Pass& pass) {
  if (pass.forward()) gather_ahead(chunks_[pass.action.chunk].entries[pass.entry()].unit);
}

void PlanBuilder::after_backward_op(const Pass& pass, std::size_t e, std::uint32_t op, TaskId task) {
  reduce_full_buckets(chunks_[pass.action.chunk], e, plan_.ops[op], task);
}

}  // namespace orrery
