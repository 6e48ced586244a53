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

// A simple command: its words, what parts it from the next one ("\n", ";", "&&", "||", "|", "&"), and the text of its
// here-document (<<EOT), if any. An array "A=(x y)" is the words "A=(", "x", "y", ")".
struct ShellCommand {
  std::vector<ShellWord> words;
  std::string ended_by;
  std::string document;
  int document_line = 0;  // line of the document's first line
};

// Cuts a script into commands. Comments and line continuations are gone. Throws Error "train.sh:3: ..." for a quote or
// bracket that is not closed, and for more than 200,000 words.
std::vector<ShellCommand> shell_commands(std::string_view text, const std::string& path);

}  // namespace orrery
