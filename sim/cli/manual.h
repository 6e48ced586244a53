#pragma once

#include <string>
#include <vector>

#include "sim/cli/option_tree.h"
#include "sim/print/progress.h"

namespace orrery {

// A page of the manual as man(7) reads it. name: without the section, "orrery-simulate".
struct ManualPage {
  std::string name;
  int section = 1;
  std::string text;

  std::string file() const { return name + "." + std::to_string(section); }
};

// The page of a program without commands, and those of a program with them: its own, one for each command, and
// orrery-spec(5) with every key of a spec.
ManualPage program_page(const CommandEntry& program);
std::vector<ManualPage> manual_pages(const CommandEntry& program);

// One page by its name; or, with a folder, all of them as files man1/NAME.1, man5/NAME.5 there. Throws Error naming the
// pages for another name.
Outcome manual_command(const CommandEntry& program, const std::string& page, const std::string& folder);

}  // namespace orrery
