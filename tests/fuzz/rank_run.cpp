#include "models/trace/trace_file.h"

#include <sstream>

#include "tests/fuzz/fuzz.h"

void orrery::fuzz::read_rank_run(std::string_view bytes) {
  std::istringstream in{std::string(bytes)};
  parse_rank_run(in, bytes.size(), "rank_0.run");
}
