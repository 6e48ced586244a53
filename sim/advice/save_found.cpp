#include "sim/advice/save_found.h"

#include <fmt/format.h>

#include "sim/advice/save_spec.h"

namespace orrery {

void save_found(const SearchCommandOptions& o, const Space& space, const Point& point) {
  if (o.save.empty() || (o.peers != nullptr && o.peers->rank() != 0)) return;
  save_spec(o.save, {fmt::format("{}, by orrery search --save: {}", o.text.path, space.text_of(point))}, o.text,
            space.overrides_of(point));
}

std::string how_to_repeat(const SearchCommandOptions& o, const std::string& command, const Style& style) {
  if (!o.save.empty()) return fmt::format("  to repeat it: orrery simulate {}\n", o.save);
  if (style.columns > 0) return "  to repeat it: --save FILE writes it as a spec\n";
  return fmt::format("  to repeat it: {}\n", command);
}

}  // namespace orrery
