#include "sim/calibrate/import.h"

#include "tests/fuzz/fuzz.h"

void orrery::fuzz::read_nccl_tests(std::string_view bytes) { import_nccl_tests("all_reduce.txt", bytes); }
