#include "sim/page/colours.h"

#include <array>

namespace orrery {

std::string_view colour_of(TimeKind kind) {
  static constexpr std::array<std::string_view, kTimeKinds> kColours = {
      kForwardColour,  // compute
      "#b58bd6",       // recompute
      "#e69f00",       // exposed tensor
      "#f0e442",       // exposed context
      "#cc79a7",       // exposed expert
      "#d55e00",       // exposed pipeline
      "#009e73",       // exposed data
      "#6d7480",       // offload
      "#33308f",       // optimizer
      "#d4d7dc",       // bubble
      "#a9afba",       // imbalance
      "#c3b9a4",       // launch
      "#8c5a2b",       // other
  };
  return kColours[static_cast<std::size_t>(kind)];
}

std::string_view colour_of(Category category) {
  static constexpr std::array<std::string_view, kCategories> kColours = {"#4477aa", "#ee6677", "#228833",
                                                                         "#ccbb44", "#66ccee", "#aa3377"};
  return kColours[static_cast<std::size_t>(category)];
}

std::string_view chart_colour(std::size_t series) {
  static constexpr std::array<std::string_view, 8> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                               "#e69f00", "#56b4e9", "#f0e442", "#20242c"};
  return kColours[series % kColours.size()];
}

}  // namespace orrery
