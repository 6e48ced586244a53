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

// The strategy in sentences for a reader who knows no degrees: how layers, batch and states are dealt to the GPUs.
std::vector<std::string> strategy_words(const Spec& spec);

// The machine as a table of two columns: GPUs, nodes, links, memory of the hosts, power.
Table machine_table(const Spec& spec);

// The values of the spec that nobody gave and on which a result usually rests (degrees, batch, software, precision),
// with their origin: columns key, value, from.
Table deciding_defaults(const Spec& spec);
// All values of the spec with their origin. given: those that the user gave, else the rest.
Table origins_table(const Spec& spec, bool given);

// The name of a kind of time as words: "exposed tensor".
std::string words_of(std::string_view name);
// The meaning of a kind of time, for a reader who meets it for the first time.
std::string_view meaning_of(TimeKind kind);

}  // namespace orrery
