#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/spec/spec.h"
#include "sim/generate/generate.h"
#include "sim/page/spec_parts.h"
#include "sim/predict/predict.h"
#include "sim/print/section.h"

namespace orrery {

// The figures of a generated text as cards: times of the first and each further token, tokens per second, memory and
// whether it fits. prefix: text put before the ids of the figures (figure() in html.h), which are their paths in the
// command's JSON.
std::string generation_cards(const GenerationReport& report, std::int64_t gpus, std::string_view prefix = "");

// The page of `orrery simulate` for a spec that generates text (workload: generate): its times, passes and memory.
// passes: the first passes in one plan, which are drawn over time; cut: the remark that there are more, "" for none.
std::string generation_page(const Spec& spec, const GenerationReport& report, const Prediction& passes,
                            const std::string& cut, const SpecNotes& notes);

// The page of `orrery explain` for a spec that generates text: its figures, then a part for each section of the text
// that the command prints.
std::string explained_generation_page(const Spec& spec, const GenerationReport& report,
                                      const std::vector<Section>& sections, const SpecNotes& notes);

}  // namespace orrery
