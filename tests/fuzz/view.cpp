#include "viz/draw/saved_view.h"

#include "tests/fuzz/fuzz.h"

void orrery::fuzz::read_view(std::string_view bytes) { parse_view(bytes, "view.json"); }
