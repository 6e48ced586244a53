#pragma once

#include <string_view>

#include "viz/timeline/timeline.h"

namespace orrery {

// The words of a profiler's event that tell its kind; the last three stand in the event's arguments, if at all.
struct EventWords {
  std::string_view name, category, phase, group, kind;
};
Kind kind_of_event(const EventWords& e);

// The kind of a communicator by its name, from our traces or PyTorch's: tensor for "tensor", data for "mesh_dp";
// `communication` where the name tells nothing.
Kind group_kind(std::string_view description);
// Index in kCoordinates of the coordinate in which the ranks of a group differ, if the group's description names only
// one; else -1.
int group_coordinate(std::string_view description);

}  // namespace orrery
