#pragma once

#include <string>
#include <vector>

#include "sim/page/spec_parts.h"
#include "sim/print/section.h"
#include "sim/report/report.h"

namespace orrery {

// The page of `orrery explain`: the figures of the step, then a part for each section of the text that the command
// prints.
std::string explain_page(const Spec& spec, const Report& report, const std::vector<Section>& sections,
                         const SpecNotes& notes);

}  // namespace orrery
