// Reads the options in a shell script: follows assignments and conditions, and collects the options of commands that
// the script reaches.
#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "models/base/error.h"
#include "sim/launch/settings.h"
#include "sim/launch/shell_flow.h"
#include "sim/launch/shell_values.h"

namespace orrery {
namespace {

constexpr std::string_view kSilentCommands[] = {"echo", "printf", "mkdir", "cat",   "sed",  "grep",
                                                "rm",   "cp",     "ls",    "pip",   "git",  "awk",
                                                "find", "exit",   "set",   "rsync", "shopt"};
constexpr std::string_view kShellPrefixes[] = {"export", "local", "declare", "readonly", "then", "do",
                                               "else",   "{",     "}",       "eval",     "exec", "time"};

template <std::size_t N>
bool is_word_of(const std::string& word, const std::string_view (&words)[N]) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

bool is_shell_option(const std::string& field) {
  return field.size() > 1 && field[0] == '-' && std::isdigit(static_cast<unsigned char>(field[1])) == 0 &&
         field[1] != '.';
}

// The length of the variable's name in a word "NAME=value" or "NAME+=value"; 0 for any other word.
std::size_t assigned_name(const std::string& word) {
  std::size_t end = 0;
  while (end < word.size() && (std::isalnum(static_cast<unsigned char>(word[end])) != 0 || word[end] == '_')) ++end;
  const bool equals = word.substr(end).starts_with("=") || word.substr(end).starts_with("+=");
  return equals && end > 0 && std::isdigit(static_cast<unsigned char>(word[0])) == 0 ? end : 0;
}

class ShellScript {
 public:
  explicit ShellScript(const std::string& path) : path_(path) {}

  Settings run(std::string_view text) {
    read_slurm(text);
    for (ShellCommand& command : shell_commands(text, path_)) {
      if (!flow_.ended()) take(command);
    }
    for (const std::string& place : flow_.undecided())
      settings_.remarks.push_back(
          fmt::format("{}: a condition was not decided, as nothing is executed; its branch is left out", place));
    add_variables();
    return std::move(settings_);
  }

 private:
  std::string at(int line) const { return fmt::format("{}:{}", path_, line); }

  // Reads the options in #SBATCH lines, and sets the environment variables that Slurm derives from them.
  void read_slurm(std::string_view text) {
    int line = 0;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view row = text.substr(begin, end - begin);
      ++line;
      begin = end + 1;
      if (!row.starts_with("#SBATCH")) continue;
      for (const ShellCommand& command : shell_commands(row.substr(7), path_)) {
        std::vector<ShellWord> words = command.words;
        for (ShellWord& word : words) word = {values_.text(word), line};
        add_options(words);
      }
    }
    for (const auto& [option, variable] : {std::pair{"nodes", "SLURM_NNODES"},
                                           {"nodes", "SLURM_JOB_NUM_NODES"},
                                           {"gpus_per_node", "SLURM_GPUS_ON_NODE"},
                                           {"ntasks", "SLURM_NTASKS"}}) {
      if (const Setting* s = settings_.find(option)) values_.set(variable, {{s->value, 0}});
    }
  }

  void take(ShellCommand& command) {
    flow_.enter(command, values_, path_);
    if (flow_.active()) {
      while (!command.words.empty() && is_word_of(command.words[0].text, kShellPrefixes))
        command.words.erase(command.words.begin());
      while (!command.words.empty() && assigned_name(command.words[0].text) > 0) assign(command);
      if (!command.words.empty()) call(command);
    }
    flow_.leave(command);
  }

  // Removes the assignment at the beginning of a command, and sets the variable that it assigns.
  void assign(ShellCommand& command) {
    const ShellWord first = command.words[0];
    const std::size_t end = assigned_name(first.text);
    const std::string name = first.text.substr(0, end);
    const bool append = first.text[end] == '+';
    const std::size_t value = end + (append ? 2 : 1);
    command.words.erase(command.words.begin());
    if (first.text.substr(value) != "(") {
      std::string text = values_.text({first.text.substr(value), first.line});
      if (const auto* old = values_.find(name); append && old != nullptr && !old->empty())
        text = old->front().text + text;
      return values_.set(name, {{std::move(text), first.line}});
    }
    std::vector<ShellWord> items;
    while (!command.words.empty()) {
      const ShellWord word = std::move(command.words[0]);
      command.words.erase(command.words.begin());
      if (word.text == ")") break;
      for (ShellWord& field : values_.fields(word)) items.push_back(std::move(field));
    }
    values_.set(name, std::move(items), append);
  }

  void call(const ShellCommand& command) {
    const std::string& name = command.words[0].text;
    if (name == "source" || name == ".") {
      settings_.refers = true;
      settings_.remarks.push_back(
          fmt::format("{}: another file is read here; what it holds is not known", at(command.words[0].line)));
    }
    if (name == "exit") flow_.stop();
    add_document(command);
    if (is_word_of(name, kSilentCommands)) return;
    std::vector<ShellWord> fields;
    for (const ShellWord& word : command.words) {
      for (ShellWord& field : values_.fields(word)) add_words(std::move(field), fields);
    }
    add_options(fields);
  }

  // Splits a field into words if it is the quoted text of a whole command line, as after `bash -c`.
  static void add_words(ShellWord field, std::vector<ShellWord>& out) {
    if (field.text.find(" --") == std::string::npos || field.text.starts_with("--"))
      return out.push_back(std::move(field));
    std::string word;
    for (const char c : field.text + " ") {
      if (c != ' ' && c != '\n' && c != '\t')
        word += c;
      else if (!word.empty())
        out.push_back({std::exchange(word, ""), field.line});
    }
  }

  // Reads a configuration that the script writes to a file, as in cat <<EOT > ds_config.json.
  void add_document(const ShellCommand& command) {
    const std::size_t first = command.document.find_first_not_of(" \t\r\n");
    if (first == std::string::npos || command.document[first] != '{') return;
    const std::string lines(static_cast<std::size_t>(std::max(0, command.document_line - 1)), '\n');
    try {
      settings_.parts.push_back(read_tree(lines + values_.document(command.document), path_));
    } catch (const Error& error) {
      settings_.remarks.emplace_back(error.what());
    }
  }

  void add_options(const std::vector<ShellWord>& fields) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::string& field = fields[i].text;
      const bool override_word = !is_shell_option(field) && assigned_name(field.substr(field.rfind('.') + 1)) > 0 &&
                                 field.find('.') < field.find('=');
      if (!is_shell_option(field) && !override_word) continue;
      const std::size_t equals = field.find('=');
      std::string name = field.substr(0, equals), value;
      name = name.substr(std::min(name.find_first_not_of("-+"), name.size()));
      std::replace(name.begin(), name.end(), '-', '_');
      if (equals != std::string::npos) value = field.substr(equals + 1);
      for (std::size_t j = i + 1; equals == std::string::npos && j < fields.size(); ++j) {
        const std::string& next = fields[j].text;
        if (is_shell_option(next) || next.ends_with(".py") || next == ">" || next == "2>&1" || next == ")") break;
        value += (value.empty() ? "" : " ") + next;
      }
      const bool flag = equals == std::string::npos && value.empty();
      if (!name.empty()) settings_.all.push_back({name, flag ? "true" : value, at(fields[i].line)});
    }
  }

  // Collects the script's variables. If the script itself states no options but sources another file, the options in
  // the variables' values are collected too.
  void add_variables() {
    const bool none = settings_.all.empty() && settings_.refers;
    for (const auto& [name, items] : values_.all()) {
      if (items.size() == 1 && items[0].line > 0)
        settings_.variables.push_back({name, items[0].text, at(items[0].line)});
      if (!none) continue;
      std::vector<ShellWord> fields;
      for (const ShellWord& item : items) add_words({" " + item.text, item.line}, fields);
      add_options(fields);
    }
  }

  const std::string& path_;
  ShellValues values_;
  ShellFlow flow_;
  Settings settings_;
};

}  // namespace

Settings read_shell(std::string_view text, const std::string& path) { return ShellScript(path).run(text); }

}  // namespace orrery
