#pragma once

#include <string>
#include <string_view>

#include "viz/timeline/timeline.h"

namespace orrery {

// These functions return what an event of a trace file says of the op that it shows. Text that is no event, or is cut
// off, says nothing.

// Returns the event's ids. text: the trace file. position: offset in the text of the event's opening bracket.
EventIds ids_of_event(std::string_view text, std::size_t position);

// Returns the shape (viz/timeline/op_shape.h) of the event's op: of a host's operator whose input sizes PyTorch's
// profiler recorded, of a collective with its number of elements, or of a kernel of Orrery's own traces; "" of others.
std::string shape_of_event(std::string_view event);

}  // namespace orrery
