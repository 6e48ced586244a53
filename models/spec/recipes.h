#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// A well-known model with the strategy and cluster that it was trained with: a built-in spec
// (models/data/recipes/<name>.json), with the source of the strategy, and a measured figure to compare a prediction
// with. Settings that the source does not state are our own choice, as `source` says.
struct NamedRecipe {
  std::string name;    // name of the recipe: "bloom-176b"
  std::string about;   // description of the recipe in one line
  std::string source;  // publication from which strategy and cluster are taken
  std::string spec;    // contents of the spec file, as parse_spec() reads them

  // name of the measured figure, as in the report: step_time_s | mfu | model_tflops_per_gpu | hardware_tflops_per_gpu
  std::string figure;
  double value = 0;
  std::string machine;  // machine on which the figure was measured, if it is not the spec's machine
  std::string figure_source;
};

std::vector<std::string_view> recipe_names();
NamedRecipe find_recipe(std::string_view name);  // throws Error listing the known names

}  // namespace orrery
