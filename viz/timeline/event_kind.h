#pragma once

#include <string_view>

#include "viz/timeline/timeline.h"

namespace orrery {

// What a profiler says of an event; the last three stand in its arguments, if at all.
struct EventWords {
  std::string_view name, category, phase, group, kind;
};
Kind kind_of_event(const EventWords& e);

// The kind of a communicator by its name, ours or PyTorch's: tensor of "tensor", data of "mesh_dp"; communication where
// it says nothing.
Kind group_kind(std::string_view description);
// Which of kCoordinates tells the ranks of a group apart, where its description says no more than that; -1 else.
int group_coordinate(std::string_view description);

}  // namespace orrery
