#pragma once

#include <optional>
#include <string>

#include "models/base/output_file.h"

namespace orrery {

// The file for the HTML page of the option --html. It is opened before the command runs, so that a file that cannot be
// written is refused at once and not after an hour's search. It gets its name and contents from write(), and does not
// appear unless write() is called. Throws Error "--html: path: cannot write: reason" with status 2.
class PageFile {
 public:
  // path: nullopt if no page is asked for, so that write() does nothing.
  explicit PageFile(const std::optional<std::string>& path);

  // Throws Error for an empty page: the command makes none of its result.
  void write(const std::string& page);

 private:
  std::optional<OutputFile> file_;
};

// The command line as an HTML page shows it, with quotation marks where a shell needs them. Words that do not change
// the result are left out: the program's folder, --html, --threads, --quiet, --json and --csv.
std::string command_words(int argc, const char* const* argv);

}  // namespace orrery
