#include "sim/page/colours.h"

#include <array>

namespace orrery {

std::string_view colour_of(TimeKind kind) {
  static constexpr std::array<std::string_view, kTimeKinds> kColours = {
      kForwardColour,  // compute
      "#b58bd6",       // recomputation
      "#e69f00",       // exposed tensor-parallel transfers
      "#f0e442",       // exposed context-parallel transfers
      "#cc79a7",       // exposed expert-parallel transfers
      "#d55e00",       // exposed pipeline transfers
      "#009e73",       // exposed data-parallel transfers
      "#6d7480",       // exposed copies of offloaded tensors
      "#33308f",       // optimizer
      "#d4d7dc",       // pipeline bubble
      "#a9afba",       // waits for slower ranks of the same stage
      "#c3b9a4",       // waits for the host to launch kernels
      "#8c5a2b",       // other idle time
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
