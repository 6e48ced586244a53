#include "models/cost/profile.h"

#include "tests/fuzz/fuzz.h"

void orrery::fuzz::read_profile(std::string_view bytes) { parse_profile(bytes, "profile.json"); }
