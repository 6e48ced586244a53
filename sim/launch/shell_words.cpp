#include "sim/launch/shell_words.h"

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {
namespace {

constexpr std::size_t kMostShellWords = 200'000;

class ShellLexer {
 public:
  ShellLexer(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  std::vector<ShellCommand> run() {
    while (at_ < text_.size()) step();
    end_command("\n");
    return std::move(commands_);
  }

 private:
  [[noreturn]] void fail(int line, std::string_view what) const {
    throw Error(fmt::format("{}:{}: {}; close it", path_, line, what));
  }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\n'; }
  bool looking_at(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  char next() {
    if (text_[at_] == '\n') ++line_;
    return text_[at_++];
  }

  void step() {
    const char c = peek();
    if (c == '\n') {
      next();
      if (!in_array_) end_command("\n");
      if (!delimiter_.empty()) read_document();
    } else if (c == ' ' || c == '\t' || c == '\r') {
      next();
    } else if (looking_at("\\\n") || looking_at("\\\r\n")) {
      while (next() != '\n') {
      }
    } else if (c == '#') {
      while (at_ < text_.size() && peek() != '\n') next();
    } else if (looking_at("<<") && !looking_at("<<<")) {
      read_delimiter();
    } else if (!in_array_ && (c == ';' || c == '&' || c == '|')) {
      read_separator();
    } else if (in_array_ && c == ')') {
      next();
      in_array_ = false;
      add(")", line_);
    } else {
      read_word();
    }
  }

  void read_separator() {
    const char c = next();
    if (peek() == c || (c == ';' && peek() == '&')) {
      next();
      end_command(std::string(2, c));
    } else {
      end_command(std::string(1, c));
    }
  }

  // Copies text up to the character that closes a bracket or quote, nested brackets included.
  void copy_until(char close, std::string& word) {
    const int begun = line_;
    const char open = close == ')' ? '(' : close == '}' ? '{' : '\0';
    for (int depth = 1; depth > 0;) {
      if (at_ >= text_.size()) fail(begun, fmt::format("a '{}' is missing", close));
      const char c = next();
      word += c;
      if (c == '\\' && close != '\'' && at_ < text_.size()) word += next();
      if (c == close) --depth;
      if (open != '\0' && c == open) ++depth;
    }
  }

  void read_word() {
    const int begun = line_;
    std::string word;
    while (at_ < text_.size()) {
      const char c = peek();
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n') break;
      if (!in_array_ && (c == ';' || c == '&' || c == '|')) break;
      if (in_array_ && c == ')') break;
      if (looking_at("\\\n")) break;
      word += next();
      if (c == '\\' && at_ < text_.size()) word += next();
      if (c == '"' || c == '\'' || c == '`') copy_until(c, word);
      if (c == '$' && (peek() == '(' || peek() == '{')) {
        const char open = next();
        copy_until(open == '(' ? ')' : '}', word += open);
      }
      if (c == '=' && peek() == '(') {
        next();
        in_array_ = true;
        return add(word + "(", begun);
      }
    }
    add(std::move(word), begun);
  }

  void read_delimiter() {
    at_ += 2;
    if (peek() == '-') next();
    while (peek() == ' ') next();
    while (at_ < text_.size() && std::string_view(" \t\r\n;|&>").find(peek()) == std::string_view::npos) {
      const char c = next();
      if (c != '\'' && c != '"' && c != '\\') delimiter_ += c;
    }
  }
  void read_document() {
    std::string document;
    const int begun = line_;
    while (at_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      const std::string_view row = text_.substr(at_, end - at_);
      at_ = std::min(end + 1, text_.size());
      ++line_;
      const std::size_t word = std::min(row.find_first_not_of('\t'), row.size());
      if (row.substr(word) == delimiter_) break;
      document += std::string(row) + "\n";
    }
    delimiter_.clear();
    if (commands_.empty()) return;
    commands_.back().document = std::move(document);
    commands_.back().document_line = begun;
  }

  void add(std::string word, int line) {
    if (++words_ > kMostShellWords)
      throw Error(fmt::format("{}:{}: more than {} words; no launch file has", path_, line, kMostShellWords));
    now_.words.push_back({std::move(word), line});
  }
  void end_command(std::string by) {
    // An empty command is kept only before ";;", which ends a branch of a case.
    if (now_.words.empty() && by != ";;") return;
    now_.ended_by = std::move(by);
    commands_.push_back(std::move(now_));
    now_ = {};
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0, words_ = 0;
  int line_ = 1;
  bool in_array_ = false;
  std::string delimiter_;  // the line that ends a here-document whose text begins on the next line
  ShellCommand now_;
  std::vector<ShellCommand> commands_;
};

}  // namespace

std::vector<ShellCommand> shell_commands(std::string_view text, const std::string& path) {
  return ShellLexer(text, path).run();
}

}  // namespace orrery
