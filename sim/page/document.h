#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// An HTML page that a command writes with the option --html. Every field but `body` is plain text.
struct Page {
  std::string title;               // what the page is about, its first heading
  std::vector<std::string> under;  // lines below the title
  std::string command;             // the command that made the page: "orrery simulate spec.yaml"
  std::string version;             // line with the version of the program that made the page
  std::string body;                // HTML markup of the page's contents
};

// The whole HTML page as one file. It has no scripts and loads nothing from elsewhere, which its own content security
// policy forbids too. The same values give the same bytes. The page has a style for printing.
std::string document(const Page& page);

}  // namespace orrery
