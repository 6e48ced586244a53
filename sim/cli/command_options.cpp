#include "sim/cli/command_options.h"

#include "models/base/installed.h"
#include "sim/cli/option_figures.h"

namespace orrery {

static constexpr double kMostCount = 1e7;

void add_repeated(CLI::App& app, const std::string& name, std::vector<std::string>& values, const std::string& about) {
  app.add_option(name, values, about)->allow_extra_args(false)->type_name("KEY=VALUE");
}

void add_shared(CLI::App& app, std::vector<std::string>& overrides, std::string& profile) {
  add_repeated(app, "--set", overrides, "override a key of the spec, e.g. --set strategy.tensor=4; may be repeated");
  app.add_option("--profile", profile, "kernel times measured by calibrate, instead of the built-in ones")
      ->type_name("FILE");
}

void add_page(CLI::App& app, CommandLine& o) {
  app.add_option("--html", o.html, "write the result as one page to read and to print, without scripts")
      ->type_name("FILE");
}

void add_device(CLI::App& app, std::string& device) {
  app.add_option("--device", device, "cpu (the default) or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->type_name("cpu|cuda");
}

CLI::Option* take_specs(CLI::Option* option) {
  const auto read = [](std::string& path) {
    path = or_installed_example(path);
    return std::string();
  };
  return option->transform(CLI::Validator(read, ""))->type_name("");
}

void take_positive(CLI::Option* option, const char* name, std::string_view unit, double most) {
  const auto read = [=](std::string& text) { return read_figure(text, {name, unit, most}); };
  option->transform(CLI::Validator(read, ""))->type_name(name);
}

void take_count(CLI::Option* option, const char* name) {
  const auto read = [=](std::string& text) { return read_count(text, {name, "", kMostCount}); };
  option->transform(CLI::Validator(read, ""))->type_name(name);
}

}  // namespace orrery
