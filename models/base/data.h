#pragma once

#include <string_view>
#include <vector>

namespace orrery {

// One file of models/data/, embedded into the program: name is its path below that folder, e.g. "gpus/h100-sxm.json".
struct DataFile {
  std::string_view name;
  std::string_view text;
};

// All data files that are embedded in the program, sorted by name.
const std::vector<DataFile>& data_files();

// A version of all embedded files together, twelve hexadecimal digits: equal where every file is.
std::string_view data_version();

// The text of one file. Throws Error naming the known files of the same folder when there is none.
std::string_view data_file(std::string_view name);

// Names (without folder and ".json") of the files in a folder, sorted: data_names("gpus") -> {"a100-pcie-40gb", ...}.
std::vector<std::string_view> data_names(std::string_view folder);

}  // namespace orrery
