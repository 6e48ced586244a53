#pragma once

#include <string_view>
#include <vector>

namespace orrery {

// One file of models/data/, embedded into the program: name is its path below that folder, e.g. "gpus/h100-sxm.json".
struct DataFile {
  std::string_view name;
  std::string_view text;
};

// Returns all data files that are embedded in the program, sorted by name.
const std::vector<DataFile>& data_files();

// Returns a version of all embedded data files together, twelve hexadecimal digits; two programs have the same version
// if all their data files are the same.
std::string_view data_version();

// Returns the contents of one embedded data file. Throws Error listing the known files of the same folder if there is
// no such file.
std::string_view data_file(std::string_view name);

// Returns the sorted names (without folder and ".json") of the embedded data files of one folder: data_names("gpus") ->
// {"a100-pcie-40gb", ...}.
std::vector<std::string_view> data_names(std::string_view folder);

}  // namespace orrery
