#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/spec/spec.h"
#include "sim/report/report.h"

namespace orrery {

// The figures of a step as cards: step time with its interval, rates, memory and whether it fits, and the rank that
// needs most of it. prefix: text put before the ids of the figures (figure() in html.h), which are their paths in the
// command's JSON.
std::string step_cards(const Report& report, std::string_view prefix = "");

// A card of a summary: a name, a figure (markup) and lines below it (plain text). mood: "good", "bad" or "".
std::string card_markup(std::string_view name, std::string_view figure, const std::vector<std::string>& lines,
                        std::string_view mood = "");
std::string cards_markup(std::string_view cards);  // several cards beside each other

// A box with a warning (plain text) that a reader must not miss.
std::string alarm_markup(std::string_view words);

// The time of a step split by kind (TimeKind: compute, exposed transfers, bubble, ...): as one stacked bar, and as a
// table with the exact seconds of each kind.
std::string time_bar(const Report& report);
std::string time_markup(const Report& report, std::string_view prefix = "");

// A numbered list of lines as markup; "" for no lines.
std::string numbered(const std::vector<std::string>& lines);

}  // namespace orrery
