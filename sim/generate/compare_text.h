#pragma once

#include <string>
#include <vector>

#include "sim/generate/generate.h"
#include "sim/print/table.h"

namespace orrery {

// One row of a comparison of specs that generate text. labels: the texts of the first columns; reason: why there is no
// prediction, if `report` is null.
struct ComparedGeneration {
  std::string name;
  std::vector<std::string> labels;
  std::int64_t batch = 0, gpus = 1;
  const GenerationReport* report = nullptr;
  std::string reason;
};

// The comparison as a table, whose first columns are `labels`; as a JSON list; and as CSV with the header `labels`.
Table compared_table(const std::vector<ComparedGeneration>& rows, const std::vector<std::string>& labels);
std::string compared_csv(const std::vector<ComparedGeneration>& rows, const std::vector<std::string>& labels);

}  // namespace orrery
