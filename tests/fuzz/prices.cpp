#include "sim/advice/prices.h"

#include "tests/fuzz/fuzz.h"

void orrery::fuzz::read_prices(std::string_view bytes) { parse_prices(bytes, "prices.json"); }
