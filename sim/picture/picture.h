#pragma once

#include <string>

#include "models/plan/plan.h"
#include "models/spec/spec.h"
#include "sim/report/report.h"

namespace orrery {

// Returns a picture of a plan as one SVG file without scripts, other files or fonts: how each matrix of the model is
// cut over ranks, which rank holds which layers and states, and which ranks talk to each other, with bytes and links
// from the report of a step. Of more than kMostShown ranks it shows some and says which. The same plan gives the same
// bytes.
std::string picture(const Spec& spec, const Plan& plan, const Report& report);

// Throws Error unless a picture may have this file name: one that ends in .svg or .svg.gz, or a device (/dev/stdout).
void check_picture_name(const std::string& path);

}  // namespace orrery
