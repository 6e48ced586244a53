#include "models/spec/asynchrony.h"

#include <fmt/format.h>

namespace orrery {

std::string text_of(const Staleness& s) {
  return fmt::format(
      "servers: weights were {:.1f} updates of other workers old on average, {} at most; a worker began a step at most "
      "{} ahead of the slowest",
      s.mean, s.most, s.most_ahead);
}

}  // namespace orrery
