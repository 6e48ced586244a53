#include "sim/launch/shell_values.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>

namespace orrery {
namespace {

constexpr int kDeepestVariable = 16;  // greatest nesting depth of ${A:-${B:-...}}
// Most characters in one variable, a limit for scripts that double a variable in a loop.
constexpr std::size_t kMostVariable = 1 << 20;

bool in_variable(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The position of the bracket `close` that closes the bracket opened just before position `at`.
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

// Expands the text inside of ${...}, which is "NAME", "NAME:-default", "NAME[@]" and the like.
void ShellValues::expand(std::string_view inside, std::string_view spelled, Reading& reading) {
  const bool quoted = reading.quoted;
  const int line = reading.line, depth = reading.depth;
  std::vector<Piece>& out = reading.out;
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

void ShellValues::Reading::flush() {
  if (!plain.empty()) out.push_back({std::exchange(plain, ""), true, line});
}

void ShellValues::read_escaped(Reading& r) {
  const char next = r.word[r.at + 1];
  if (r.quoted && std::string_view("$`\"\\\n").find(next) == std::string_view::npos) r.plain += '\\';
  // In a line continuation the character after the backslash is the line break. It is kept, as it separates words like
  // a blank and keeps line numbers right.
  r.plain += next;
  r.at += 2;
}

void ShellValues::read_quotes(Reading& r) {
  const char quote = r.word[r.at];
  const std::size_t begin = ++r.at;
  while (r.at < r.word.size() && r.word[r.at] != quote) r.at += quote == '"' && r.word[r.at] == '\\' ? 2 : 1;
  r.at = std::min(r.at, r.word.size());
  r.flush();
  const std::string_view inside = r.word.substr(begin, r.at - begin);
  if (quote == '\'' || inside.empty())
    r.out.push_back({std::string(inside), true, r.line});
  else
    for (Piece& p : pieces(inside, r.line, true, r.depth + 1)) r.out.push_back(std::move(p));
  ++r.at;
}

void ShellValues::read_dollar(Reading& r) {
  const std::string_view rest = r.word.substr(r.at);
  const auto spelled_to = [&](std::size_t end) { return r.word.substr(r.at, std::min(end, r.word.size()) - r.at); };
  std::string_view spelled = rest.substr(0, 1);
  if (rest.starts_with("$((")) {
    const std::size_t end = closing_bracket(r.word, r.at + 2, '(', ')');
    const std::size_t inner = std::min(r.at + 3, r.word.size());
    const auto value = shell_arithmetic(r.word.substr(inner, std::max(end, inner + 1) - 1 - inner), *this);
    spelled = spelled_to(end + 1);
    r.plain += value ? fmt::format("{}", *value) : std::string(spelled);
  } else if (rest.starts_with("$(")) {
    spelled = spelled_to(closing_bracket(r.word, r.at + 2, '(', ')') + 1);
    r.flush();
    r.out.push_back({std::string(spelled), true, r.line});
  } else if (rest.starts_with("${")) {
    const std::size_t end = closing_bracket(r.word, r.at + 2, '{', '}');
    spelled = spelled_to(end + 1);
    r.flush();
    expand(r.word.substr(r.at + 2, end - r.at - 2), spelled, r);
  } else if (rest.size() > 1 && in_variable(rest[1])) {
    std::size_t end = 1;
    while (end < rest.size() && in_variable(rest[end])) ++end;
    spelled = rest.substr(0, end);
    r.flush();
    expand(rest.substr(1, end - 1), spelled, r);
  } else {
    r.plain += '$';
  }
  r.at += spelled.size();
}

std::vector<ShellValues::Piece> ShellValues::pieces(std::string_view word, int line, bool quoted, int depth) {
  if (depth > kDeepestVariable) return {{std::string(word), true, line}};
  Reading r{.word = word, .line = line, .quoted = quoted, .depth = depth, .out = {}, .plain = {}};
  while (r.at < word.size()) {
    const char c = word[r.at];
    if (c == '\\' && r.at + 1 < word.size())
      read_escaped(r);
    else if (!quoted && (c == '\'' || c == '"'))
      read_quotes(r);
    else if (c == '$')
      read_dollar(r);
    else
      r.plain += word[r.at++];
  }
  r.flush();
  return std::move(r.out);
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
