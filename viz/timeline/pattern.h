#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// A regular expression (ECMAScript's characters, groups, classes, | * + ? {m,n} ^ $ \d \w \s), ignoring case. Matching
// takes time proportional to the text for every pattern: all alternatives are followed at once (Thompson 1968), without
// backtracking. There are no back references and no lookahead. Text is bytes.
class Pattern {
 public:
  explicit Pattern(const std::string& text);  // compiles a pattern; throws Error if it is invalid or too large
  bool found_in(std::string_view text) const;

  struct State {
    enum class Kind : std::uint8_t { characters, split, begin, end, accept };
    Kind kind = Kind::accept;
    std::uint32_t next = 0, other = 0;  // the automaton's next state; after a split there are two, `next` and `other`
    std::bitset<256> characters;
  };

 private:
  std::vector<State> states_;
  std::uint32_t start_ = 0;
};

}  // namespace orrery
