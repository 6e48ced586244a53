// `orrery validate --recipes`: compares predictions for the built-in recipes with the published figures.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/load/load_spec.h"
#include "models/spec/recipes.h"
#include "models/spec/sharding.h"
#include "models/spec/spec.h"
#include "sim/cli/commands.h"
#include "sim/page/validate.h"
#include "sim/predict/long_steps.h"
#include "sim/predict/predict.h"
#include "sim/print/section.h"
#include "sim/report/report_text.h"

namespace orrery {
namespace {

struct Row {
  NamedRecipe recipe;
  Spec spec;
  Report report;
  double predicted = 0;  // predicted value of the figure that the recipe's source gives

  double error() const { return predicted / recipe.value - 1; }
};

std::string layout_text(const Strategy& s) {
  std::string text = fmt::format("TP{}", s.tensor);
  if (s.context > 1) text += fmt::format(" CP{}", s.context);
  if (s.pipeline > 1) text += fmt::format(" PP{}", s.pipeline);
  if (s.virtual_stages > 1) text += fmt::format(" VP{}", s.virtual_stages);
  text += fmt::format(" DP{}", s.data);
  if (s.expert > 1) text += fmt::format(" EP{}", s.expert);
  if (s.pipeline > 1) text += " " + s.schedule;
  return text + fmt::format(" {}", name_of(s.sharding));
}

// A figure of a recipe as text: "8.95 s", "46.2 %", "400 TFLOP/s".
std::string figure_text(const std::string& figure, double value) {
  if (figure == "step_time_s") return time_text(value);
  if (figure == "mfu") return percent_text(value) + " MFU";
  return fmt::format("{:.0f} TFLOP/s", value);
}

// The predicted value of the figure that was published for a recipe. MFU and TFLOP/s count attention over all s x s
// pairs of tokens, as papers do.
double predicted_figure(const Report& r, const std::string& figure) {
  if (figure == "mfu") return r.mfu_full_attention;
  if (figure == "model_tflops_per_gpu") return r.model_tflops_full_attention;
  if (figure == "hardware_tflops_per_gpu") return r.hardware_tflops_full_attention;
  return r.step_time_s;
}

Row row_of(std::string_view name) {
  Row row{find_recipe(name), load_spec(std::string(name)), {}};
  row.report = predict_report(row.spec, profile_for(row.spec, ""));
  row.predicted = predicted_figure(row.report, row.recipe.figure);
  return row;
}

std::string to_json(const std::vector<Row>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Row& r : rows) {
    list.push_back({{"name", r.recipe.name},
                    {"figure", r.recipe.figure},
                    {"predicted", r.predicted},
                    {"published", r.recipe.value},
                    {"error", r.error()},
                    {"source", r.recipe.figure_source},
                    {"layout_source", r.recipe.source},
                    {"report", nlohmann::ordered_json::parse(orrery::to_json(r.report))}});
    if (!r.recipe.machine.empty()) list.back()["measured_on"] = r.recipe.machine;
  }
  return list.dump(2) + '\n';
}

Section section_of(const std::vector<Row>& rows) {
  Section section{.title = "Recipes"};
  section.table = {{{"recipe", "", Align::left},
                    {"GPUs"},
                    {"layout", "", Align::left},
                    {"memory", "GiB"},
                    {"fits", "", Align::left},
                    {"predicted"},
                    {"published"},
                    {"error", "%"}},
                   {}};
  for (const Row& r : rows) {
    const MemoryReport& m = r.report.memory;
    section.table.rows.push_back({r.recipe.name, fmt::format("{}", r.spec.gpus), layout_text(r.spec.strategy),
                                  fmt::format("{:.1f}", static_cast<double>(m.peak_device) / kGiB),
                                  m.fits ? "yes" : "NO", figure_text(r.recipe.figure, r.predicted),
                                  figure_text(r.recipe.figure, r.recipe.value),
                                  fmt::format("{:+.1f}", 100 * r.error())});
    section.after.push_back(fmt::format("{}: {}; published: {}{}", r.recipe.name, r.recipe.source,
                                        r.recipe.figure_source,
                                        r.recipe.machine.empty() ? "" : ", on " + r.recipe.machine));
  }
  return section;
}

// A kind of published figure in words.
std::string figure_words(const std::string& figure) {
  if (figure == "step_time_s") return "step time, s";
  if (figure == "mfu") return "MFU";
  if (figure == "model_tflops_per_gpu") return "TFLOP/s per GPU of the model";
  return "TFLOP/s per GPU, recomputation counted";
}

// An HTML page with one plot for each kind of published figure (step time, MFU, TFLOP/s).
std::string page_of_recipes(const std::vector<Row>& rows, const Section& section, const Common& common) {
  std::map<std::string, PagePlot> plots;
  for (const Row& r : rows) {
    const std::string figure = figure_words(r.recipe.figure);
    PagePlot& plot = plots[figure];
    plot.title = r.recipe.figure == "step_time_s" ? "Step time" : figure;
    plot.caption = "The line is where prediction and publication agree, the dashes are 10 % off.";
    plot.scatter.x_name = "published " + figure;
    plot.scatter.y_name = "predicted " + figure;
    plot.scatter.logarithmic = plot.scatter.equal = true;
    plot.scatter.points.push_back({r.recipe.value, r.predicted, 0, r.recipe.name, r.recipe.name});
  }
  ValidatePage page{.title = "Recipes, predicted beside what was published of them", .sections = {section}};
  for (const auto& [figure, plot] : plots) page.plots.push_back(plot);
  page.command = common.command;
  page.version = common.version;
  return validate_page(page);
}

}  // namespace

Outcome validate_recipes_command(const Common& common) {
  std::vector<Row> rows;
  for (const std::string_view name : recipe_names()) {
    common.progress(fmt::format("{}: predicting", name));
    rows.push_back(row_of(name));
  }
  const Section section = section_of(rows);
  Outcome outcome;
  if (common.json) {
    outcome.text = to_json(rows);
  } else {
    outcome.text = print(section.table, "", common.style.columns) + '\n';
    for (const std::string& line : section.after) outcome.text += line + '\n';
  }
  if (common.page) outcome.page = page_of_recipes(rows, section, common);
  return outcome;
}

}  // namespace orrery
