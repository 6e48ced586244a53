#pragma once

#include <string_view>

#include "models/plan/plan.h"
#include "sim/report/report.h"

namespace orrery {

// Colours of a page, "#rrggbb", which readers who do not tell red from green can tell apart too: compute has blues of
// different lightness, groups of transfers have the colours of Okabe and Ito (Color Universal Design, 2008), categories
// of memory Paul Tol's bright scheme (personal.sron.nl/~pault). The timeline's window (viz/) has the same ones.
std::string_view colour_of(TimeKind kind);
std::string_view colour_of(Category category);
// colour of the series of this index in a chart: one of Okabe and Ito's eight, which are used in turn
std::string_view chart_colour(std::size_t series);

inline constexpr std::string_view kInkColour = "#20242c", kForwardColour = "#2c6fb3", kBackwardColour = "#7cb9e8",
                                  kWeightGradientColour = "#4a8f8f", kLimitColour = "#c0392b", kFaintColour = "#5b6270",
                                  kLineColour = "#d9dde3", kIdleColour = "#eceef2";

}  // namespace orrery
