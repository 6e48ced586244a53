#include "sim/calibrate/import.h"

#include "tests/fuzz/fuzz.h"

void orrery::fuzz::read_kineto(std::string_view bytes) { import_kineto("trace.json", bytes); }
