// Completion for zsh, by zsh's own function _arguments.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/cli/completion.h"

namespace orrery {
namespace {

// Quotes a text so that it can stand inside single quotes in an argument of _arguments or _describe.
std::string zsh_quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\')
      out += fmt::format("\\{}", c);
    else
      out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string zsh_action(const OptionEntry& o) {
  switch (o.kind) {
    case ValueKind::keys:
      return "_orrery_keys";
    case ValueKind::words:
      return fmt::format("({})", fmt::join(o.words, " "));
    case ValueKind::file:
      return "_files";
    default:
      return "";
  }
}

std::string zsh_argument(const OptionEntry& o) {
  std::string text;
  for (const std::string& name : o.names) {
    text += fmt::format(" \\\n      '{}{}", o.repeats ? "*" : "", o.positional() ? "" : name);
    if (!o.positional()) text += fmt::format("[{}]", zsh_quoted(o.about));
    if (o.kind != ValueKind::none)
      text += fmt::format(":{}:{}", zsh_quoted(o.positional() || o.value.empty() ? o.names.front() : o.value),
                          zsh_action(o));
    text += '\'';
  }
  return text;
}

std::string zsh_arguments(const std::vector<OptionEntry>& options) {
  std::string text;
  for (const OptionEntry& o : options) text += zsh_argument(o);
  return text;
}

std::string zsh_keys(const std::vector<CompletedKey>& keys) {
  std::string names, values;
  for (const CompletedKey& k : keys) {
    names += ' ' + k.name;
    if (!k.words.empty()) values += fmt::format("    {} '{}'\n", k.name, fmt::join(k.words, " "));
  }
  return fmt::format(R"(_orrery_keys() {{
  local -a keys
  local -A values
  keys=({})
  values=(
{}  )
  if [[ $PREFIX == *=* ]]; then
    local key=${{PREFIX%%=*}}
    compset -P '*[=,]'
    compadd -- ${{=values[$key]}}
  else
    compadd -S = -- $keys
  fi
}}
)",
                     names, values);
}

std::string zsh_commands(const CommandEntry& program) {
  std::string described, branches;
  for (const CommandEntry& c : program.commands) {
    described += fmt::format("    '{}:{}'\n", c.name, zsh_quoted(c.about));
    branches +=
        fmt::format("    {}) _arguments{}{} ;;\n", c.name, zsh_arguments(c.options), zsh_arguments(program.flags()));
  }
  return fmt::format(R"(  local state
  local -a commands
  commands=(
{}  )
  _arguments -C{} \
      '1:command:->command' '*::argument:->rest'
  case $state in
  command) _describe command commands ;;
  rest)
    case $words[1] in
{}    esac ;;
  esac
)",
                     described, zsh_arguments(program.flags()), branches);
}

}  // namespace

std::string zsh_completion(const CommandEntry& program, const std::vector<CompletedKey>& keys) {
  const bool alone = program.commands.empty();
  const std::string body =
      alone ? fmt::format("  _arguments{}\n", zsh_arguments(program.options)) : zsh_commands(program);
  return fmt::format(
      "#compdef {0}\n# Completion of {0} for zsh, printed by `{0} {1}`.\n{2}_{0}() {{\n{3}}}\n_{0} \"$@\"\n",
      program.name, alone ? "--completion zsh" : "completion zsh", zsh_keys(keys), body);
}

}  // namespace orrery
