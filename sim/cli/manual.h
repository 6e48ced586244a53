#pragma once

#include <string>
#include <vector>

#include "sim/cli/option_tree.h"
#include "sim/print/progress.h"

namespace orrery {

// A page of the manual in the format of man(7). name: the page's name without section, "orrery-simulate".
struct ManualPage {
  std::string name;
  int section = 1;
  std::string text;

  std::string file() const { return name + "." + std::to_string(section); }
};

// program_page(): the page of a program without commands. manual_pages(): the pages of a program with commands: its
// own, one for each command, and orrery-spec(5) with every key of a spec.
ManualPage program_page(const CommandEntry& program);
std::vector<ManualPage> manual_pages(const CommandEntry& program);

// Prints the manual page with this name or, if a folder is given, writes all pages there as files man1/NAME.1 and
// man5/NAME.5. Throws Error that lists the pages if no page has this name.
Outcome manual_command(const CommandEntry& program, const std::string& page, const std::string& folder);

}  // namespace orrery
