#include "sim/published/predict.h"

#include "tests/fuzz/fuzz.h"

void orrery::fuzz::read_published(std::string_view bytes) { parse_published(bytes, "published.json"); }
