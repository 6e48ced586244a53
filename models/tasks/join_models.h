#pragma once

#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// Joins the plans of two models on ranks of their own (SecondModel): the ranks, stages and buffers of the second one
// come after those of the first, and every transfer of the second model's output (Dimension::hand_over) has its senders
// and its receivers. Throws Error if the models do not hand over the micro-batches in the same order.
Plan join_models(const Spec& spec, Plan trained, const Plan& second);

}  // namespace orrery
