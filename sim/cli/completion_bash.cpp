// Completion for bash: one function with tables of words. bash splits words at `=`, so that the function sees `--set
// KEY=VALUE` as the option and three words: KEY, = and VALUE.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/cli/completion.h"

namespace orrery {
namespace {

std::string option_names(const std::vector<OptionEntry>& options) {
  std::string text;
  for (const OptionEntry& o : options) text += fmt::format("{}{}", text.empty() ? "" : " ", fmt::join(o.names, " "));
  return text;
}

// The branch that completes the value of one option, in the script's case statement over "COMMAND OPTION".
std::string bash_branch(const std::string& command, const OptionEntry& o) {
  std::string labels;
  for (const std::string& name : o.names)
    labels += fmt::format("{}'{} {}'", labels.empty() ? "" : " | ", command, name);
  const std::string body = o.kind == ValueKind::keys    ? "wants=keys"
                           : o.kind == ValueKind::words ? fmt::format("wants=words words='{}'", fmt::join(o.words, " "))
                           : o.kind == ValueKind::file  ? "wants=files"
                                                        : "wants=nothing";
  return fmt::format("    {}) {} ;;\n", labels, body);
}

std::string bash_branches(const std::string& command, const CommandEntry& entry) {
  std::string text;
  for (const OptionEntry& o : entry.flags()) {
    if (o.kind != ValueKind::none) text += bash_branch(command, o);
  }
  return text;
}

// The words that a command accepts as positional arguments; "" if it accepts any.
std::string positional_words(const CommandEntry& entry) {
  std::string text;
  for (const OptionEntry& o : entry.positionals()) text += fmt::format(" {}", fmt::join(o.words, " "));
  return text.empty() || text == " " ? "" : text;
}

std::string options_case(const CommandEntry& program, const std::string& shared) {
  std::string text = "  case $command in\n";
  for (const CommandEntry& c : program.commands)
    text += fmt::format("    {}) options='{} {}' words='{}' ;;\n", c.name, option_names(c.flags()), shared,
                        positional_words(c));
  std::string names;
  for (const CommandEntry& c : program.commands) names += ' ' + c.name;
  return text + fmt::format("    *) options='{}' words='{}' ;;\n  esac\n", shared, names);
}

constexpr const char* kBashScript = R"(# Completion of {0} for bash, printed by `{0} {1}`.
{2}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command= key= value= wants= words= options= word
  local keys='{3}'
  COMPREPLY=()
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case $word in {4}) command=$word; break ;; esac
  done
  if [[ $current == = ]]; then
    key=$previous
  elif [[ $previous == = && COMP_CWORD -gt 2 ]]; then
    key=${{COMP_WORDS[COMP_CWORD-2]}} value=$current
  fi
  if [[ -n $key ]]; then
    case $key in
{5}    esac
    COMPREPLY=($(compgen -P "${{value%"${{value##*,}}"}}" -W "$words" -- "${{value##*,}}"))
    return
  fi
  case "$command $previous" in
{6}  esac
  case $wants in
    keys) compopt -o nospace 2>/dev/null; COMPREPLY=($(compgen -S = -W "$keys" -- "$current")); return ;;
    words) COMPREPLY=($(compgen -W "$words" -- "$current")); return ;;
    files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
    nothing) return ;;
  esac
{7}  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
    return
  fi
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [[ {8} ]]; then mapfile -t -O "${{#COMPREPLY[@]}}" COMPREPLY < <(compgen -f -- "$current"); fi
}}
complete -F {2} {0}
)";

}  // namespace

std::string bash_completion(const CommandEntry& program, const std::vector<CompletedKey>& keys) {
  std::string names, values, commands = "''";
  for (const CompletedKey& k : keys) {
    names += (names.empty() ? "" : " ") + k.name;
    if (!k.words.empty()) values += fmt::format("      {}) words='{}' ;;\n", k.name, fmt::join(k.words, " "));
  }
  for (const CommandEntry& c : program.commands) commands += " | " + c.name;
  std::string function = "_" + program.name, takes;
  for (char& c : function) c = c == '-' ? '_' : c;
  const std::string shared = option_names(program.flags());
  takes += bash_branches("", program);
  for (const CommandEntry& c : program.commands) takes += bash_branches(c.name, c) + bash_branches(c.name, program);
  return fmt::format(kBashScript, program.name, program.commands.empty() ? "--completion bash" : "completion bash",
                     function, names, commands, values, takes, options_case(program, shared),
                     program.commands.empty() ? "-z $command" : "-n $command");
}

}  // namespace orrery
