#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "sim/cli/command_line.h"

namespace orrery {

// Each of these functions adds one command, with its options, to the program.
void add_simulate(CLI::App& app, CommandLine& o);
void add_compare(CLI::App& app, CommandLine& o);
void add_search(CLI::App& app, CommandLine& o);
void add_explain(CLI::App& app, CommandLine& o);
void add_run(CLI::App& app, CommandLine& o);
void add_calibrate(CLI::App& app, CommandLine& o);
void add_validate(CLI::App& app, CommandLine& o);
void add_import(CLI::App& app, CommandLine& o);
void add_export(CLI::App& app, CommandLine& o);
void add_run_length(CLI::App& app, CommandLine& o);
void add_import_topology(CLI::App& app, CommandLine& o);
void add_whatif(CLI::App& app, CommandLine& o);
void add_trace(CLI::App& app, CommandLine& o);

// Adds to a command an option that may be given several times, with one value each time.
void add_repeated(CLI::App& app, const std::string& name, std::vector<std::string>& values, const std::string& about);
void add_shared(CLI::App& app, std::vector<std::string>& overrides, std::string& profile);
// Adds the option --html to a command that can write its result as an HTML page.
void add_page(CLI::App& app, CommandLine& o);
// Adds the option --device to a command that runs or measures.
void add_device(CLI::App& app, std::string& device);
// Makes an option take the path of a spec file. If no file has that path, the name may be that of an installed example.
CLI::Option* take_specs(CLI::Option* option);
// Makes an option take a positive number. name: what the help calls the number; unit: the unit of a number that is
// given without one; most: the largest number accepted.
void take_positive(CLI::Option* option, const char* name, std::string_view unit = "", double most = 1e18);
void take_count(CLI::Option* option, const char* name);

}  // namespace orrery
