#include "sim/calibrate/import.h"

#include "tests/fuzz/fuzz.h"

void orrery::fuzz::read_nccl_tests_json(std::string_view bytes) { import_nccl_tests_json("all_reduce.json", bytes); }
