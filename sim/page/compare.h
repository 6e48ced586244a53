#pragma once

#include <string>
#include <vector>

#include "models/spec/spec.h"
#include "sim/print/table.h"
#include "sim/report/report.h"

namespace orrery {

// A spec in a comparison. report: its prediction, nullptr if it cannot be predicted; `reason` then says why. origins:
// all values of the spec, and where each comes from.
struct ComparedSpec {
  std::string name;
  const Report* report = nullptr;
  std::string reason;
  std::vector<Origin> origins;
};

// The page of `orrery compare`. table: the table that the command also prints in the terminal.
struct ComparePage {
  Table table;
  std::vector<ComparedSpec> specs;
  std::string command, version;
};
std::string compare_page(const ComparePage& page);

// A table of the values in which specs differ, with a row for each key and a column for each spec ("-" where a spec has
// no such key). For more than six specs it has a row for each spec and a column for each key. Of very many keys only
// the first are shown.
Table differences(const std::vector<ComparedSpec>& specs);

}  // namespace orrery
