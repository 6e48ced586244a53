#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// A well-known model with the layout that it was trained in: a spec that needs no file
// (models/data/recipes/<name>.json), with the source of that layout, and a measured figure to compare a prediction
// with. Settings that the source does not print are our own choice, as `source` says.
struct NamedRecipe {
  std::string name;    // "bloom-176b"
  std::string about;   // one line about the recipe
  std::string source;  // source of the layout
  std::string spec;    // the spec's text, as parse_spec() reads it

  // The measured figure: step_time_s | mfu | model_tflops_per_gpu | hardware_tflops_per_gpu, keys of the report.
  std::string figure;
  double value = 0;
  std::string machine;  // machine on which the figure was measured, if that is not the spec's
  std::string figure_source;
};

std::vector<std::string_view> recipe_names();
NamedRecipe find_recipe(std::string_view name);  // throws Error listing the known names

}  // namespace orrery
