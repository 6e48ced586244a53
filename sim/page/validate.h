#pragma once

#include <string>
#include <vector>

#include "sim/generate/served.h"
#include "sim/page/scatter.h"
#include "sim/print/section.h"
#include "sim/published/predict.h"

namespace orrery {

// A scatter plot with a heading, and a line of text below it.
struct PagePlot {
  std::string title;
  Scatter scatter;
  std::string caption;
};

// A page of `orrery validate`: plots of predicted against measured, then tables.
struct ValidatePage {
  std::string title;
  std::vector<std::string> under;
  std::vector<PagePlot> plots;
  std::vector<Section> sections;
  std::string command, version;
};
std::string validate_page(const ValidatePage& page);

// Scatter plots of predicted against measured figures: of published steps (step time and peak memory) and of published
// inference (a plot for each figure), with a series for each publication or software stack. Doubtful rows and those
// without a prediction are left out.
std::vector<PagePlot> published_plots(const std::vector<PublishedCase>& cases);
std::vector<PagePlot> served_plots(const std::vector<ServedCase>& cases);

}  // namespace orrery
