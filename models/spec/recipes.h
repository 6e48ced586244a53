#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// A model of the field with the layout that it was trained in: a spec that needs no file
// (models/data/recipes/<name>.json), where its layout is printed, and a measured figure to hold a prediction against.
// What a source does not print is ours and said in `source`.
struct NamedRecipe {
  std::string name;    // "bloom-176b"
  std::string about;   // a line
  std::string source;  // of the layout
  std::string spec;    // as parse_spec() reads it

  // step_time_s | mfu | model_tflops_per_gpu | hardware_tflops_per_gpu, keys of the report.
  std::string figure;
  double value = 0;
  std::string machine;  // where it was measured, if that is not the spec's
  std::string figure_source;
};

std::vector<std::string_view> recipe_names();
NamedRecipe find_recipe(std::string_view name);  // throws Error listing the known names

}  // namespace orrery
