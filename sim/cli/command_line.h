#pragma once

#include <optional>
#include <string>

#include "sim/advice/search_options.h"
#include "sim/cli/commands.h"

namespace CLI {
class App;
}

namespace orrery {

// CommandLine has what a command line asks for: the options of every command, of which those of one are used, and of
// all commands.
struct CommandLine {
  SimulateOptions simulate;
  CompareOptions compare;
  SearchCommandOptions search;
  ExplainOptions explain;
  RunOptions run;
  CalibrateOptions calibrate;
  ValidateOptions validate;
  ImportOptions import;
  ExportOptions exported;
  TraceOptions trace;
  WhatifOptions whatif;
  ImportTopologyOptions topology;
  RunLengthOptions run_length;
  std::string list, shell, page = "orrery", manual_folder;
  bool json = false, markdown = false, quiet = false;
  std::optional<std::string> html;  // path of the HTML page to write
  std::string command;              // the command line, to be shown on the HTML page
  unsigned threads = 1;             // workers; set_up() makes them as many as the machine has
};

// Adds all commands and options to the program; parsing then fills the command line.
void set_up(CLI::App& app, CommandLine& o);

// Throws Error if the command line has words that belong to no command or option.
void check_extras(const CLI::App& app);

}  // namespace orrery
