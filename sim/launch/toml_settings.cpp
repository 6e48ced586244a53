// Reads the options in TOML files (toml.io, 1.0). The parser is written by hand: of the libraries that Debian has,
// toml++ aborts on some inputs and toml11 reads beyond its buffer on others (a key with an unclosed quote) and clamps
// numbers of more than 64 bits.
#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/names.h"
#include "sim/launch/settings.h"

namespace orrery {
namespace {

constexpr int kDeepestToml = 32;
constexpr std::string_view kBareEnds = " \t\r\n,]}#=";

class TomlReader {
 public:
  TomlReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Settings run() {
    while (skip_to_word()) {
      if (peek() == '[')
        read_header();
      else
        read_pair(table_, 0);
      end_line();
    }
    return std::move(settings_);
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw Error(
        fmt::format("{}:{}: not TOML: {}; mend the line, or name a file of another format", path_, line_, what));
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool looking_at(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  char next() {
    if (at_ >= text_.size()) fail("the text ends here");
    if (text_[at_] == '\n') ++line_;
    return text_[at_++];
  }
  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\r') ++at_;
  }
  void skip_comment() {
    while (peek() == '#' && at_ < text_.size() && text_[at_] != '\n')
      at_ = std::min(text_.find('\n', at_), text_.size());
  }
  // Skips empty lines and comments; returns whether any text is left.
  bool skip_to_word() {
    for (;;) {
      skip_blanks();
      skip_comment();
      if (at_ >= text_.size() || peek() != '\n') return at_ < text_.size();
      next();
    }
  }
  void expect(char sign) {
    skip_blanks();
    if (peek() != sign) fail(fmt::format("a '{}' is missing", sign));
    next();
  }
  void end_line() {
    skip_blanks();
    skip_comment();
    if (at_ < text_.size() && peek() != '\n') fail("a line has more than its value");
  }

  // Reads the header of a TOML table: [table], or [[table]] for one item of a list of tables, which then all have the
  // same name.
  void read_header() {
    const bool list = looking_at("[[");
    at_ += list ? 2 : 1;
    table_ = read_key() + ".";
    expect(']');
    if (list) expect(']');
    if (list) std::erase_if(seen_, [&](const std::string& name) { return name.starts_with(table_); });
  }
  std::string read_key() {
    std::string key;
    for (int parts = 0;; ++parts) {
      if (parts > kDeepestToml) fail("a key of too many parts");
      skip_blanks();
      key += peek() == '"' || peek() == '\'' ? read_string() : read_bare(".");
      skip_blanks();
      if (peek() != '.') return key;
      key += next();
    }
  }
  std::string read_bare(std::string_view more_ends) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && kBareEnds.find(peek()) == std::string_view::npos &&
           more_ends.find(peek()) == std::string_view::npos)
      ++at_;
    if (at_ == begin) fail("a word is missing");
    return std::string(text_.substr(begin, at_ - begin));
  }
  void read_pair(const std::string& prefix, int depth) {
    const std::string name = prefix + read_key();
    const int line = line_;
    expect('=');
    skip_blanks();
    if (peek() == '{') return read_inline_table(name + ".", depth + 1);
    if (!seen_.insert(name).second) fail(fmt::format("{} is given twice", printable(name.substr(0, 64))));
    settings_.all.push_back({name, read_value(depth), fmt::format("{}:{}", path_, line)});
  }
  void read_inline_table(const std::string& prefix, int depth) {
    if (depth > kDeepestToml) fail("nested too deeply");
    expect('{');
    for (skip_blanks(); peek() != '}'; skip_blanks()) {
      read_pair(prefix, depth);
      skip_blanks();
      if (peek() != '}') expect(',');
    }
    next();
  }
  std::string read_value(int depth) {
    if (depth > kDeepestToml) fail("nested too deeply");
    if (peek() == '"' || peek() == '\'') return read_string();
    if (peek() == '[') return read_list(depth);
    if (peek() == '{') {
      read_inline_table("", depth + 1);  // a table within a list is no option, so it is skipped
      return "";
    }
    std::string word = read_bare("");
    if (looking_at(" ") && word.size() == 10 && word[4] == '-') {  // a date, after which the time of day follows
      word += next();
      word += read_bare("");
    }
    const bool number = std::string_view("+-0123456789").find(word[0]) != std::string_view::npos;
    if (number) std::erase(word, '_');
    const bool known = number || word == "true" || word == "false" || word == "inf" || word == "nan";
    if (!known) fail(fmt::format("{} is no value", printable(word.substr(0, 64))));
    return word[0] == '+' ? word.substr(1) : word;
  }
  std::string read_list(int depth) {
    std::string joined;
    expect('[');
    while (skip_to_word() && peek() != ']') {
      joined += (joined.empty() ? "" : " ") + read_value(depth + 1);
      if (skip_to_word() && peek() != ']') expect(',');
    }
    expect(']');
    return joined;
  }
  std::string read_string() {
    const char quote = peek();
    const std::string three(3, quote);
    const bool lines = looking_at(three);
    at_ += lines ? 3 : 1;
    std::string out;
    while (lines ? !looking_at(three) : peek() != quote) {
      if (!lines && peek() == '\n') fail("a quote is not closed");
      const char c = next();
      if (c != '\\' || quote == '\'')
        out += c;
      else
        out += escaped(next());
    }
    at_ += lines ? 3 : 1;
    return out;
  }
  static char escaped(char c) { return c == 'n' ? '\n' : c == 't' ? '\t' : c; }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::string table_;  // name of the current table, which precedes the names of its keys
  std::set<std::string> seen_;
  Settings settings_;
};

}  // namespace

Settings read_toml(std::string_view text, const std::string& path) { return TomlReader(text, path).run(); }

}  // namespace orrery
