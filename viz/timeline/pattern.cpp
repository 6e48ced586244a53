#include "viz/timeline/pattern.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/names.h"

namespace orrery {
namespace {

constexpr std::size_t kMostStates = 2000;
constexpr int kDeepestGroup = 50;
constexpr int kMostRepeats = 1000;
constexpr std::size_t kLongestShown = 60;  // greatest number of characters of a pattern that an error message quotes

using StateKind = Pattern::State::Kind;

// A node of the parsed pattern: characters, begin and end of text are leaves, the other nodes have children.
struct PatternPart {
  enum class Form : std::uint8_t { characters, begin, end, sequence, either, repeat };
  Form form = Form::sequence;
  std::bitset<256> characters;
  std::vector<PatternPart> parts;
  int least = 0, most = -1;  // smallest and greatest number of repetitions; most -1: unlimited
};

std::size_t code(char c) { return static_cast<unsigned char>(c); }

void insert_both_cases(std::bitset<256>& set, std::size_t c) {
  set.set(static_cast<std::size_t>(std::tolower(static_cast<int>(c))));
  set.set(static_cast<std::size_t>(std::toupper(static_cast<int>(c))));
}

// Adds the characters of the class \d, \w, \s or its complement to a set; returns false if the letter names no class.
bool insert_class(std::bitset<256>& set, char letter) {
  int (*is)(int) = nullptr;
  const char small = static_cast<char>(std::tolower(letter));
  if (small == 'd') is = std::isdigit;
  if (small == 'w') is = std::isalnum;
  if (small == 's') is = std::isspace;
  if (is == nullptr) return false;
  for (int c = 0; c < 128; ++c) {
    const bool in = is(c) != 0 || (small == 'w' && c == '_');
    if (in == (letter == small)) set.set(static_cast<std::size_t>(c));
  }
  for (std::size_t c = 128; letter != small && c < 256; ++c) set.set(c);
  return true;
}

class PatternParser {
 public:
  explicit PatternParser(const std::string& text) : text_(text) {}

  PatternPart parse() {
    PatternPart whole = either(0);
    if (at_ < text_.size()) fail();
    return whole;
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(printable(text_.substr(0, kLongestShown)) +
                ": is no regular expression; write \\ before ( ) [ ] { } * + ? . that are meant as they are");
  }
  bool done() const { return at_ == text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  char take() {
    if (done()) fail();
    return text_[at_++];
  }
  bool skip(char c) {
    if (done() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  PatternPart either(int depth) {
    if (depth > kDeepestGroup) fail();
    PatternPart all{PatternPart::Form::either, {}, {}};
    do all.parts.push_back(sequence(depth));
    while (skip('|'));
    return all;
  }

  PatternPart sequence(int depth) {
    PatternPart all{PatternPart::Form::sequence, {}, {}};
    while (!done() && peek() != '|' && peek() != ')') all.parts.push_back(repeated(atom(depth)));
    return all;
  }

  int number() {
    int value = 0;
    if (done() || std::isdigit(static_cast<unsigned char>(peek())) == 0) fail();
    while (!done() && std::isdigit(static_cast<unsigned char>(peek())) != 0)
      value = std::min(kMostRepeats + 1, value * 10 + (take() - '0'));
    if (value > kMostRepeats) fail();
    return value;
  }

  PatternPart repeated(PatternPart one) {
    PatternPart all{PatternPart::Form::repeat, {}, {}};
    if (skip('*')) {
      all.least = 0;
    } else if (skip('+')) {
      all.least = 1;
    } else if (skip('?')) {
      all.most = 1;
    } else if (skip('{')) {
      all.least = number();
      if (!skip(','))
        all.most = all.least;
      else if (peek() != '}')
        all.most = number();
      if (!skip('}') || (all.most >= 0 && all.most < all.least)) fail();
    } else {
      return one;
    }
    skip('?');  // a lazy repetition is read like a greedy one: only whether the pattern matches counts
    if (one.form == PatternPart::Form::begin || one.form == PatternPart::Form::end) fail();
    if (peek() == '*' || peek() == '+' || peek() == '?' || peek() == '{') fail();
    all.parts.push_back(std::move(one));
    return all;
  }

  PatternPart atom(int depth) {
    PatternPart one{PatternPart::Form::characters, {}, {}};
    const char c = take();
    if (c == '(') return group(depth);
    if (c == '^') return {PatternPart::Form::begin, {}, {}};
    if (c == '$') return {PatternPart::Form::end, {}, {}};
    if (c == '*' || c == '+' || c == '?' || c == '{') fail();
    if (c == '[')
      one.characters = set();
    else if (c == '.')
      one.characters.set().reset(code('\n'));
    else if (c == '\\')
      insert_escaped(one.characters);
    else
      insert_both_cases(one.characters, code(c));
    return one;
  }

  PatternPart group(int depth) {
    if (skip('?') && !skip(':')) fail();
    PatternPart inner = either(depth + 1);
    if (!skip(')')) fail();
    return inner;
  }

  // Parses an escape of a regular expression: returns the character for which it stands; for a class such as \d, adds
  // the class to the set `to` and returns 0.
  char insert_escaped(std::bitset<256>& to) {
    char c = take();
    if (insert_class(to, c)) return 0;
    if (c == 'n')
      c = '\n';
    else if (c == 't')
      c = '\t';
    else if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      fail();
    insert_both_cases(to, code(c));
    return c;
  }

  std::bitset<256> set() {
    std::bitset<256> all;
    const bool opposite = skip('^');
    while (!skip(']')) {
      char first = take();
      if (first == '\\')
        first = insert_escaped(all);
      else
        insert_both_cases(all, code(first));
      if (first == 0 || peek() != '-' || at_ + 1 >= text_.size() || text_[at_ + 1] == ']') continue;
      ++at_;
      char last = take();
      if (last == '\\') last = insert_escaped(all);
      if (last == 0 || code(last) < code(first)) fail();
      for (std::size_t c = code(first); c <= code(last); ++c) insert_both_cases(all, c);
    }
    return opposite ? ~all : all;
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

// Builds the automaton's states from the end of the pattern to the beginning: each state needs the states after it.
struct PatternStates {
  std::vector<Pattern::State> states;

  std::uint32_t add(Pattern::State state) {
    if (states.size() >= kMostStates) throw Error("a regular expression of more than 2000 steps; write a shorter one");
    states.push_back(std::move(state));
    return static_cast<std::uint32_t>(states.size() - 1);
  }

  std::uint32_t make(const PatternPart& p, std::uint32_t next) {
    switch (p.form) {
      case PatternPart::Form::characters:
        return add({StateKind::characters, next, 0, p.characters});
      case PatternPart::Form::begin:
        return add({StateKind::begin, next, 0, {}});
      case PatternPart::Form::end:
        return add({StateKind::end, next, 0, {}});
      case PatternPart::Form::sequence:
        for (std::size_t i = p.parts.size(); i-- > 0;) next = make(p.parts[i], next);
        return next;
      case PatternPart::Form::either: {
        std::uint32_t first = make(p.parts[0], next);
        for (std::size_t i = 1; i < p.parts.size(); ++i)
          first = add({StateKind::split, first, make(p.parts[i], next), {}});
        return first;
      }
      case PatternPart::Form::repeat:
        break;
    }
    return make_repeat(p, next);
  }

  std::uint32_t make_repeat(const PatternPart& p, std::uint32_t next) {
    std::uint32_t first = next;
    if (p.most < 0) {
      first = add({StateKind::split, next, next, {}});
      const std::uint32_t body = make(p.parts[0], first);
      states[first].next = body;
    }
    for (int i = p.least; i < p.most; ++i) first = add({StateKind::split, make(p.parts[0], first), next, {}});
    for (int i = 0; i < p.least; ++i) first = make(p.parts[0], first);
    return first;
  }
};

// The set of the automaton's states that can be reached with the text read so far.
class Reached {
 public:
  explicit Reached(const std::vector<Pattern::State>& states) : states_(&states), marks_(states.size()) {}

  // Adds a state of the automaton to the set, and all states that are reached from it without reading a character.
  void add(std::uint32_t state, bool at_begin, bool at_end) {
    waiting_.push_back(state);
    while (!waiting_.empty()) {
      const std::uint32_t s = waiting_.back();
      waiting_.pop_back();
      if (marks_[s]) continue;
      marks_[s] = true;
      list_.push_back(s);
      const Pattern::State& state_here = (*states_)[s];
      accepted_ = accepted_ || state_here.kind == StateKind::accept;
      const bool passes = state_here.kind == StateKind::split || (state_here.kind == StateKind::begin && at_begin) ||
                          (state_here.kind == StateKind::end && at_end);
      if (passes) waiting_.push_back(state_here.next);
      if (state_here.kind == StateKind::split) waiting_.push_back(state_here.other);
    }
  }
  void clear() {
    for (const std::uint32_t s : list_) marks_[s] = false;
    list_.clear();
  }
  const std::vector<std::uint32_t>& list() const { return list_; }
  bool accepted() const { return accepted_; }

 private:
  const std::vector<Pattern::State>* states_;
  std::vector<bool> marks_;
  std::vector<std::uint32_t> list_, waiting_;
  bool accepted_ = false;
};

}  // namespace

Pattern::Pattern(const std::string& text) {
  PatternStates made;
  const std::uint32_t accept = made.add({StateKind::accept, 0, 0, {}});
  start_ = made.make(PatternParser(text).parse(), accept);
  states_ = std::move(made.states);
}

bool Pattern::found_in(std::string_view text) const {
  Reached now(states_), next(states_);
  now.add(start_, true, text.empty());
  for (std::size_t i = 0; i < text.size() && !now.accepted(); ++i) {
    const bool at_end = i + 1 == text.size();
    for (const std::uint32_t s : now.list()) {
      if (states_[s].kind == StateKind::characters && states_[s].characters[code(text[i])])
        next.add(states_[s].next, false, at_end);
    }
    next.add(start_, false, at_end);
    now.clear();
    std::swap(now, next);
  }
  return now.accepted();
}

}  // namespace orrery
