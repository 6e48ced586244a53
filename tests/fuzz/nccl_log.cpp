#include "sim/calibrate/import.h"

#include "tests/fuzz/fuzz.h"

void orrery::fuzz::read_nccl_log(std::string_view bytes) { import_nccl_log("nccl.log", bytes); }
