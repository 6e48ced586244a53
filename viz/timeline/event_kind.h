#pragma once

#include <string_view>

#include "viz/timeline/timeline.h"

namespace orrery {

// Texts of a profiler's event from which its kind is derived; the last three are optional arguments of the event.
struct EventWords {
  std::string_view name, category, phase, group, kind;
};
Kind kind_of_event(const EventWords& e);

// Returns the kind of a communicator (group of ranks), by its name in Orrery's traces or PyTorch's: tensor for
// "tensor", data for "mesh_dp"; `communication` for an unknown name.
Kind group_kind(std::string_view description);
// Returns the index in kCoordinates of the coordinate (data, tensor, ...) in which the ranks of a group differ, if the
// group's description names exactly one; else -1.
int group_coordinate(std::string_view description);

}  // namespace orrery
