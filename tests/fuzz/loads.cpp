#include "models/load/expert_loads.h"

#include "tests/fuzz/fuzz.h"

void orrery::fuzz::read_loads(std::string_view bytes) { parse_loads(bytes, "loads.json"); }
