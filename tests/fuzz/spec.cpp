#include "models/spec/spec.h"

#include <string>

#include "models/load/load_spec.h"
#include "tests/fuzz/fuzz.h"

void orrery::fuzz::read_spec(std::string_view bytes) { parse_spec(std::string(bytes), "spec.yaml"); }
