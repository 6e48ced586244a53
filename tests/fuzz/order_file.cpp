#include "models/schedule/schedule_file.h"

#include <string>

#include "tests/fuzz/fuzz.h"

// A pipeline of two stages and three micro-batches, of one chunk or of two.
void orrery::fuzz::read_order_file(std::string_view bytes) {
  const std::int64_t chunks = 1 + static_cast<std::int64_t>(bytes.size() % 2);
  parse_schedule(std::string(bytes), "order.txt", {.stages = 2, .micro_batches = 3, .chunks = chunks});
}
