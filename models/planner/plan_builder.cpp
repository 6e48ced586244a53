#include "models/planner/plan_builder.h"

#include <algorithm>

namespace orrery {

PlanBuilder::PlanBuilder(Draft& draft, TaskWriter& writer, PostValidation* validation)
    : StepPart(draft, writer), validation_(validation) {}

}  // namespace orrery
