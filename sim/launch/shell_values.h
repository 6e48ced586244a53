#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/launch/shell_words.h"

namespace orrery {

// The variables of a shell script, and the expansion of words in which they occur. A variable that the script does not
// set stays as it is spelled ("$DATA_PATH"), and so does a command substitution ("$(nproc)"), because nothing is
// executed.
class ShellValues {
 public:
  // Sets a variable to its items: one item, or any number for an array. append: whether the assignment is NAME+=value.
  void set(const std::string& name, std::vector<ShellWord> items, bool append = false);
  const std::vector<ShellWord>* find(const std::string& name) const;
  const std::map<std::string, std::vector<ShellWord>>& all() const { return variables_; }

  // The fields to which a word expands: an unquoted variable may give several, or none. Each field keeps the line
  // number of the text that it comes from.
  std::vector<ShellWord> fields(const ShellWord& word);
  // The text to which a word expands as one field, as in an assignment.
  std::string text(const ShellWord& word);
  // The text of a here-document with variables replaced by their values.
  std::string document(const std::string& text);

 private:
  struct Piece {
    std::string text;
    bool quoted = false;
    int line = 0;
    bool ends_field = false;  // whether the piece is an item of an array, after which a new field begins
  };
  // A word of a shell script that is being cut into pieces, some quoted and some not: the position of the next
  // character, the pieces so far, and the plain characters since the last piece, that is, characters without quotes and
  // variables.
  struct Reading {
    std::string_view word;
    int line = 0;
    bool quoted = false;  // whether the word stands in double quotes
    int depth = 0;        // nesting depth of the expansions and quotes around the word
    std::size_t at = 0;
    std::vector<Piece> out;
    std::string plain;

    void flush();  // appends the plain characters so far to `out` as a piece of the word
  };
  std::vector<Piece> pieces(std::string_view word, int line, bool quoted, int depth);
  // The functions below each read one construct at the position reading.at: a character after a backslash, a text in
  // quotes, or an expansion that begins with a dollar sign.
  static void read_escaped(Reading& reading);
  void read_quotes(Reading& reading);
  void read_dollar(Reading& reading);
  void expand(std::string_view inside, std::string_view spelled, Reading& reading);
  std::string joined(std::string_view word, int line, int depth);

  std::map<std::string, std::vector<ShellWord>> variables_;
};

// The value of an arithmetic expression of whole numbers (+ - * / % **, brackets, names); nullopt for an unknown name,
// a division by zero, or a result beyond 64 bits.
std::optional<long long> shell_arithmetic(std::string_view expression, const ShellValues& values);

}  // namespace orrery
