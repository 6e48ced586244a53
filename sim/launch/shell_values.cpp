#include "sim/launch/shell_values.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>

namespace orrery {
namespace {

constexpr int kDeepestVariable = 16;  // greatest nesting depth of ${A:-${B:-...}}
// Most characters in one variable, in case a script doubles it in a loop.
constexpr std::size_t kMostVariable = 1 << 20;

bool in_variable(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The position at which `close` closes the bracket that was opened before position `at`.
std::size_t closing_bracket(std::string_view text, std::size_t at, char open, char close) {
  for (int depth = 1; at < text.size(); ++at) {
    if (text[at] == open) ++depth;
    if (text[at] == close && --depth == 0) return at;
  }
  return text.size();
}

}  // namespace

void ShellValues::set(const std::string& name, std::vector<ShellWord> items, bool append) {
  std::vector<ShellWord>& now = variables_[name];
  if (!append) now.clear();
  std::size_t size = 0;
  for (const ShellWord& word : now) size += word.text.size();
  for (ShellWord& word : items) {
    size += word.text.size();
    if (size > kMostVariable) return;
    now.push_back(std::move(word));
  }
}

const std::vector<ShellWord>* ShellValues::find(const std::string& name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : &found->second;
}

// Expands what is inside of ${...}: "NAME", "NAME:-default", "NAME[@]" and the like.
void ShellValues::expand(std::string_view inside, std::string_view spelled, bool quoted, int line, int depth,
                         std::vector<Piece>& out) {
  std::size_t end = 0;
  while (end < inside.size() && in_variable(inside[end])) ++end;
  const std::string name(inside.substr(0, end));
  std::string_view rest = inside.substr(end);
  const bool all = rest.starts_with("[@]") || rest.starts_with("[*]");
  if (all) rest.remove_prefix(3);
  const std::vector<ShellWord>* items = name.empty() ? nullptr : find(name);
  const bool empty = items == nullptr || items->empty() || (items->size() == 1 && items->front().text.empty());
  const std::size_t sign = rest.starts_with(":") ? 1 : 0;
  const char how = rest.size() > sign ? rest[sign] : '\0';
  if ((how == '-' || how == '=') && (sign == 1 ? empty : items == nullptr)) {
    const std::string value = joined(rest.substr(sign + 1), line, depth + 1);
    if (how == '=') set(name, {{value, line}});
    out.push_back({value, quoted, line});
  } else if (how == '+') {
    if (!empty) out.push_back({joined(rest.substr(sign + 1), line, depth + 1), quoted, line});
  } else if (items == nullptr || (!rest.empty() && how != '-' && how != '=')) {
    out.push_back({std::string(spelled), true, line});
  } else {
    const std::size_t count = all ? items->size() : std::min<std::size_t>(1, items->size());
    for (std::size_t i = 0; i < count; ++i)
      out.push_back({(*items)[i].text, quoted || all, (*items)[i].line, all && i + 1 < count});
  }
}

std::vector<ShellValues::Piece> ShellValues::pieces(std::string_view word, int line, bool quoted, int depth) {
  std::vector<Piece> out;
  if (depth > kDeepestVariable) return {{std::string(word), true, line}};
  std::string plain;
  const auto flush = [&] {
    if (!plain.empty()) out.push_back({std::exchange(plain, ""), true, line});
  };
  for (std::size_t at = 0; at < word.size();) {
    const char c = word[at];
    if (c == '\\' && at + 1 < word.size()) {
      const char next = word[at + 1];
      if (quoted && std::string_view("$`\"\\\n").find(next) == std::string_view::npos) plain += c;
      // For a line continuation this keeps the line break, which separates words like a blank and keeps line numbers
      // right.
      plain += next;
      at += 2;
    } else if (!quoted && (c == '\'' || c == '"')) {
      const std::size_t begin = ++at;
      while (at < word.size() && word[at] != c) at += c == '"' && word[at] == '\\' ? 2 : 1;
      at = std::min(at, word.size());
      flush();
      if (c == '\'')
        out.push_back({std::string(word.substr(begin, at - begin)), true, line});
      else if (at == begin)
        out.push_back({"", true, line});
      else
        for (Piece& p : pieces(word.substr(begin, at - begin), line, true, depth + 1)) out.push_back(std::move(p));
      ++at;
    } else if (c == '$' && word.substr(at).starts_with("$((")) {
      const std::size_t end = closing_bracket(word, at + 2, '(', ')');
      const std::size_t inner = std::min(at + 3, word.size());
      const auto value = shell_arithmetic(word.substr(inner, std::max(end, inner + 1) - 1 - inner), *this);
      const std::size_t stop = std::min(end + 1, word.size());
      plain += value ? fmt::format("{}", *value) : std::string(word.substr(at, stop - at));
      at = stop;
    } else if (c == '$' && at + 1 < word.size() && (word[at + 1] == '(' || word[at + 1] == '{')) {
      const bool command = word[at + 1] == '(';
      const std::size_t end = closing_bracket(word, at + 2, command ? '(' : '{', command ? ')' : '}');
      const std::size_t stop = std::min(end + 1, word.size());
      flush();
      const std::string_view spelled = word.substr(at, stop - at);
      if (command)
        out.push_back({std::string(spelled), true, line});
      else
        expand(word.substr(at + 2, end - at - 2), spelled, quoted, line, depth, out);
      at = stop;
    } else if (c == '$' && at + 1 < word.size() && in_variable(word[at + 1])) {
      std::size_t end = at + 1;
      while (end < word.size() && in_variable(word[end])) ++end;
      flush();
      expand(word.substr(at + 1, end - at - 1), word.substr(at, end - at), quoted, line, depth, out);
      at = end;
    } else {
      plain += c;
      ++at;
    }
  }
  flush();
  return out;
}

std::string ShellValues::joined(std::string_view word, int line, int depth) {
  std::string text;
  for (const Piece& p : pieces(word, line, false, depth)) text += p.text + (p.ends_field ? " " : "");
  return text.size() > kMostVariable ? "" : text;
}

std::string ShellValues::text(const ShellWord& word) { return joined(word.text, word.line, 0); }

std::string ShellValues::document(const std::string& text) {
  std::string out;
  for (const Piece& p : pieces(text, 0, true, 0)) out += p.text + (p.ends_field ? " " : "");
  return out;
}

std::vector<ShellWord> ShellValues::fields(const ShellWord& word) {
  std::vector<ShellWord> out;
  bool open = false;  // whether the next piece of text is added to the last field
  for (const Piece& piece : pieces(word.text, word.line, false, 0)) {
    if (piece.quoted) {
      if (!open) out.push_back({"", piece.line});
      out.back().text += piece.text;
      open = !piece.ends_field;
      continue;
    }
    int line = piece.line;
    for (const char c : piece.text) {
      const bool blank = c == ' ' || c == '\t' || c == '\n';
      if (blank)
        open = false;
      else if (!open)
        out.push_back({"", line});
      if (!blank) open = true, out.back().text += c;
      if (c == '\n') ++line;
    }
  }
  return out;
}

}  // namespace orrery
