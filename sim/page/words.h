#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/spec/spec.h"
#include "sim/print/table.h"
#include "sim/report/report.h"

namespace orrery {

// The model and the machine as a title: "gpt3-175b on 512 x NVIDIA A100 SXM4 80GB".
std::string title_words(const Spec& spec);

// A description of the strategy for a reader who does not know parallel degrees: how layers, batch and states are
// divided among the GPUs.
std::vector<std::string> strategy_words(const Spec& spec);

// The machine as a table of two columns: GPUs, nodes, links, memory of the hosts, power.
Table machine_table(const Spec& spec);

// A table of those defaults of a spec on which a result usually depends most (parallel degrees, batch, software,
// precision), with the origin of each: columns key, value, from.
Table deciding_defaults(const Spec& spec);
// A table of values of the spec with their origin. given: whether to list the values that the user gave, or else all
// others.
Table origins_table(const Spec& spec, bool given);

// The name of a kind of time (TimeKind) with blanks instead of underscores: "exposed tensor".
std::string words_of(std::string_view name);
// An explanation of a kind of time (TimeKind), for a reader who meets it for the first time.
std::string_view meaning_of(TimeKind kind);

}  // namespace orrery
