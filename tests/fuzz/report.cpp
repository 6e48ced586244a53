#include "viz/read/load.h"

#include "tests/fuzz/fuzz.h"

void orrery::fuzz::read_report(std::string_view bytes) { document_of_report("report.json", bytes); }
