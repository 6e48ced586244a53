#pragma once

#include <string>
#include <vector>

#include "models/spec/spec.h"
#include "sim/print/table.h"
#include "sim/report/report.h"

namespace orrery {

// A spec that is compared. report: nullptr if it cannot be predicted; `reason` then says why. origins: all its values.
struct ComparedSpec {
  std::string name;
  const Report* report = nullptr;
  std::string reason;
  std::vector<Origin> origins;
};

// The page of `orrery compare`. table: the comparison as the text has it.
struct ComparePage {
  Table table;
  std::vector<ComparedSpec> specs;
  std::string command, version;
};
std::string compare_page(const ComparePage& page);

// The values in which specs differ: a row for each key, a column for each spec ("-" where a spec has no such key). With
// more than six specs a row for each spec and a column for each key. Of very many keys the first are shown.
Table differences(const std::vector<ComparedSpec>& specs);

}  // namespace orrery
