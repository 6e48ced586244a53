#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/spec/spec.h"
#include "sim/report/report.h"

namespace orrery {

// The figures of a step as cards: step time and interval, rates, memory and whether it fits, of which rank. prefix: put
// before the names under which the figures can be found (figure() in html.h), as their place in the command's JSON.
std::string step_cards(const Report& report, std::string_view prefix = "");

// A card of a summary: a name, a figure (markup) and lines below it (plain text). mood: "good", "bad" or "".
std::string card_markup(std::string_view name, std::string_view figure, const std::vector<std::string>& lines,
                        std::string_view mood = "");
std::string cards_markup(std::string_view cards);  // several cards beside each other

// A box with a warning (plain text), for what a reader must not miss.
std::string alarm_markup(std::string_view words);

// The kinds of time of a step as one stacked bar; and as a table with the exact seconds of each.
std::string time_bar(const Report& report);
std::string time_markup(const Report& report, std::string_view prefix = "");

// A list of lines with numbers; "" for none.
std::string numbered(const std::vector<std::string>& lines);

}  // namespace orrery
