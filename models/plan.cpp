#include "models/plan.h"

#include <array>

namespace orrery {

std::string_view name_of(Dimension d) {
  static constexpr std::array<std::string_view, 9> names = {"tensor",   "context",   "expert", "data", "replicate",
                                                            "pipeline", "embedding", "model",  "world"};
  return names[static_cast<std::size_t>(d)];
}

std::string_view name_of(LaneKind l) {
  static constexpr std::array<std::string_view, kLanes> names = {"compute",
                                                                 "tensor",
                                                                 "context",
                                                                 "expert",
                                                                 "data reduce",
                                                                 "data gather",
                                                                 "replicate",
                                                                 "send next",
                                                                 "receive previous",
                                                                 "send previous",
                                                                 "receive next",
                                                                 "embedding",
                                                                 "model",
                                                                 "down",
                                                                 "up",
                                                                 "cpu"};
  return names[static_cast<std::size_t>(l)];
}

std::string_view name_of(Category c) {
  static constexpr std::array<std::string_view, kCategories> names = {"parameters",  "gradients", "optimizer",
                                                                      "activations", "buffers",   "workspace"};
  return names[static_cast<std::size_t>(c)];
}

std::uint32_t frame_of(const Plan& plan, std::uint32_t frame, Scope scope) {
  const Frame& f = plan.frames[frame];
  switch (scope) {
    case Scope::own:
      return frame;
    case Scope::next:
      return f.next;
    case Scope::previous:
      return f.previous;
    case Scope::unit:
      return f.unit;
    case Scope::state:
      return f.state == kNone ? frame : f.state;
  }
  return kNone;
}

}  // namespace orrery
