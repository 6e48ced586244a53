// Completion for fish: the script has one line for each command, option and key.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/cli/completion.h"

namespace orrery {
namespace {

std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "'";
}

std::string fish_value(const OptionEntry& o) {
  switch (o.kind) {
    case ValueKind::keys:
      return " -x -a '(__orrery_keys)'";
    case ValueKind::words:
      return fmt::format(" -x -a '{}'", fmt::join(o.words, " "));
    case ValueKind::file:
      return " -r -F";
    case ValueKind::other:
      return " -x";
    default:
      return "";
  }
}

// A line of the script for an option. condition: when fish offers the option; "" for always.
std::string fish_line(const std::string& program, const std::string& condition, const OptionEntry& o) {
  std::string text = fmt::format("complete -c {}{}", program, condition);
  for (const std::string& name : o.names)
    text += name.starts_with("--") ? fmt::format(" -l {}", name.substr(2)) : fmt::format(" -s {}", name.substr(1));
  return text + fish_value(o) + " -d " + fish_quoted(o.about) + '\n';
}

std::string fish_lines(const std::string& program, const std::string& condition, const CommandEntry& entry) {
  std::string text;
  for (const OptionEntry& o : entry.flags()) text += fish_line(program, condition, o);
  for (const OptionEntry& o : entry.positionals()) {
    if (!o.words.empty())
      text += fmt::format("complete -c {}{} -f -a '{}'\n", program, condition, fmt::join(o.words, " "));
  }
  return text;
}

std::string fish_keys(const std::vector<CompletedKey>& keys) {
  std::string text = "function __orrery_keys\n";
  for (const CompletedKey& k : keys) {
    text += fmt::format("  echo {}=\n", k.name);
    for (const std::string& word : k.words) text += fmt::format("  echo {}={}\n", k.name, word);
  }
  return text + "end\n";
}

}  // namespace

std::string fish_completion(const CommandEntry& program, const std::vector<CompletedKey>& keys) {
  const bool alone = program.commands.empty();
  std::string text = fmt::format("# Completion of {0} for fish, printed by `{0} {1}`.\n", program.name,
                                 alone ? "--completion fish" : "completion fish");
  text += fish_keys(keys) + fish_lines(program.name, "", program);
  for (const CommandEntry& c : program.commands)
    text += fmt::format("complete -c {} -n __fish_use_subcommand -f -a {} -d {}\n", program.name, c.name,
                        fish_quoted(c.about));
  for (const CommandEntry& c : program.commands)
    text += fish_lines(program.name, fmt::format(" -n '__fish_seen_subcommand_from {}'", c.name), c);
  return text;
}

}  // namespace orrery
