#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// A word of a shell script as it is spelled, quotes and variables included.
struct ShellWord {
  std::string text;
  int line = 0;
};

// A simple command: its words, the separator before the next command ("\n", ";", "&&", "||", "|", "&"), and the text of
// its here-document (<<EOT), if any. An array "A=(x y)" is the words "A=(", "x", "y", ")".
struct ShellCommand {
  std::vector<ShellWord> words;
  std::string ended_by;
  std::string document;
  int document_line = 0;  // line number of the here-document's first line
};

// Splits a script into commands, without comments and line continuations. Throws Error "train.sh:3: ..." for a quote or
// bracket that is not closed, and for more than 200,000 words.
std::vector<ShellCommand> shell_commands(std::string_view text, const std::string& path);

}  // namespace orrery
