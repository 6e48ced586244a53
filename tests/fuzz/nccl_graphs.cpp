#include <string>

#include "sim/calibrate/import.h"
#include "tests/fuzz/fuzz.h"

void orrery::fuzz::read_nccl_graphs(std::string_view bytes) { import_nccl_graphs("graphs", std::string(bytes)); }
