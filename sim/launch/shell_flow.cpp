#include "sim/launch/shell_flow.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace orrery {
namespace {

constexpr std::size_t kDeepestFlow = 64;

bool is_test(const std::string& word) { return word == "[" || word == "[[" || word == "test"; }

// The text of a word in a condition of a script. A variable that the script does not set (still spelled "$NAME") counts
// as empty in conditions.
std::string set_text(const std::string& text) { return text.starts_with("$") ? "" : text; }

std::optional<long long> shell_number(const std::string& text) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// Whether a text matches a pattern in which * stands for any characters.
bool matches_pattern(std::string_view text, std::string_view pattern) {
  std::size_t t = 0, p = 0, star = std::string_view::npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

struct ShellComparison {
  std::string_view sign;
  bool (*holds)(long long, long long);
};
constexpr ShellComparison kShellComparisons[] = {
    {"-eq", [](long long a, long long b) { return a == b; }}, {"-ne", [](long long a, long long b) { return a != b; }},
    {"-lt", [](long long a, long long b) { return a < b; }},  {"-le", [](long long a, long long b) { return a <= b; }},
    {"-gt", [](long long a, long long b) { return a > b; }},  {"-ge", [](long long a, long long b) { return a >= b; }}};

}  // namespace

ShellFlow::Truth ShellFlow::test(const ShellCommand& command, std::size_t first, ShellValues& values) {
  const auto yes = [](bool holds) { return holds ? Truth::yes : Truth::no; };
  std::vector<std::string> words;
  for (std::size_t i = first; i < command.words.size(); ++i) words.push_back(values.text(command.words[i]));
  if (!words.empty() && words[0] == "!") {
    const Truth inner = test(command, first + 1, values);
    return inner == Truth::undecided ? inner : yes(inner == Truth::no);
  }
  if (words.size() < 2 || !is_test(words[0])) return Truth::undecided;
  if (words.back() == "]" || words.back() == "]]") words.pop_back();
  words.erase(words.begin());
  if (words.size() == 1) return yes(!set_text(words[0]).empty());
  if (words.size() == 2 && words[0] == "-z") return yes(set_text(words[1]).empty());
  if (words.size() == 2 && words[0] == "-n") return yes(!set_text(words[1]).empty());
  if (words.size() != 3) return Truth::undecided;
  const std::string a = set_text(words[0]), b = set_text(words[2]);
  if (words[1] == "==" || words[1] == "=") return yes(matches_pattern(a, b));
  if (words[1] == "!=") return yes(!matches_pattern(a, b));
  for (const ShellComparison& c : kShellComparisons) {
    if (words[1] == c.sign && shell_number(a) && shell_number(b))
      return yes(c.holds(*shell_number(a), *shell_number(b)));
  }
  return Truth::undecided;
}

bool ShellFlow::reached(std::size_t frames) const {
  return std::all_of(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(frames),
                     [](const Frame& f) { return f.active; });
}

bool ShellFlow::active() const {
  const bool testing = !frames_.empty() && (frames_.back().testing || frames_.back().at_pattern);
  return !testing && !skipping_ && reached(frames_.size());
}

void ShellFlow::decide(Frame& frame, const ShellCommand& command, std::size_t first, ShellValues& values,
                       const std::string& path) {
  const bool asked = !frame.taken && reached(frames_.size() - 1);
  const Truth truth = asked ? test(command, first, values) : Truth::no;
  if (truth == Truth::undecided && !command.words.empty())
    undecided_.push_back(fmt::format("{}:{}", path, command.words[0].line));
  const bool holds = truth == Truth::yes;
  if (frame.joined_by == "&&")
    frame.active = frame.active && holds;
  else if (frame.joined_by == "||")
    frame.active = frame.active || holds;
  else
    frame.active = holds;
  frame.joined_by = command.ended_by;
}

void ShellFlow::enter_case(Frame& frame, ShellCommand& command, ShellValues& values) {
  if (command.words.empty()) return;
  std::string pattern = values.text(command.words[0]);
  const bool last = pattern.ends_with(")");
  if (last) pattern.pop_back();
  if (pattern.starts_with("(")) pattern.erase(0, 1);
  frame.matched = frame.matched || matches_pattern(set_text(frame.subject), pattern);
  command.words.erase(command.words.begin());
  if (!last) return command.words.clear();
  frame.active = frame.matched && !frame.taken;
  frame.taken = frame.taken || frame.matched;
  frame.matched = frame.at_pattern = false;
}

void ShellFlow::push(Frame frame) {
  if (frames_.size() < kDeepestFlow) frames_.push_back(std::move(frame));
}

bool ShellFlow::open(const std::string& word, ShellCommand& command, ShellValues& values, const std::string& path) {
  if (word == "if" || word == "while" || word == "until") {
    push({});
    frames_.back().testing = true;
    decide(frames_.back(), command, 1, values, path);
    if (word != "if") frames_.back().active = reached(frames_.size() - 1);
    command.words.clear();
  } else if (word == "for") {
    if (command.words.size() > 3 && reached(frames_.size()))
      values.set(command.words[1].text, {{values.text(command.words[3]), command.words[3].line}});
    push({});
    command.words.clear();
  } else if (word == "case" && command.words.size() > 2) {
    Frame frame;
    frame.is_case = frame.at_pattern = true;
    frame.subject = values.text(command.words[1]);
    push(std::move(frame));
    command.words.erase(command.words.begin(), command.words.begin() + 3);
    if (!command.words.empty()) enter_case(frames_.back(), command, values);
  } else {
    return false;
  }
  return true;
}

bool ShellFlow::close(const std::string& word, ShellCommand& command) {
  if (word != "fi" && word != "esac" && word != "done") return false;
  if (!frames_.empty()) frames_.pop_back();
  command.words.clear();
  return true;
}

bool ShellFlow::branch(const std::string& word, ShellCommand& command, ShellValues& values, const std::string& path) {
  if (frames_.empty()) return false;
  Frame& frame = frames_.back();
  if (word == "elif") {
    frame.taken = frame.taken || frame.active;
    frame.testing = true;
    decide(frame, command, 1, values, path);
    command.words.clear();
  } else if (word == "else") {
    frame.active = !frame.taken && !frame.active;
    command.words.erase(command.words.begin());
  } else if (word == "then" || word == "do") {
    frame.testing = false;
    frame.joined_by.clear();
    command.words.erase(command.words.begin());
  } else if (frame.testing) {
    decide(frame, command, 0, values, path);
    command.words.clear();
  } else {
    return false;
  }
  return true;
}

void ShellFlow::enter(ShellCommand& command, ShellValues& values, const std::string& path) {
  skipping_ = std::exchange(skip_next_, false);
  const std::string first = command.words.empty() ? "" : command.words[0].text;
  if (!frames_.empty() && frames_.back().at_pattern && first != "esac") enter_case(frames_.back(), command, values);
  const std::string word = command.words.empty() ? "" : command.words[0].text;
  if (open(word, command, values, path) || close(word, command) || branch(word, command, values, path)) return;
  if (is_test(word) && (command.ended_by == "&&" || command.ended_by == "||")) {
    const bool holds = active() && test(command, 0, values) == Truth::yes;
    skip_next_ = command.ended_by == "&&" ? !holds : holds;
    command.words.clear();
  }
}

void ShellFlow::leave(const ShellCommand& command) {
  if (command.ended_by != ";;" || frames_.empty() || !frames_.back().is_case) return;
  frames_.back().at_pattern = true;
  frames_.back().active = true;
}

}  // namespace orrery
