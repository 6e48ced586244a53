#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// A node of the parsed contents of a YAML or JSON file, with the number of its line. Any keys can be parsed, not only
// those of a spec.
struct SpecNode {
  enum class Kind : unsigned char { null, scalar, list, map };
  Kind kind = Kind::null;
  int line = 0;                   // line number in the file, counted from 1; 0 = given by --set
  std::string text;               // the characters of a scalar
  std::vector<std::string> keys;  // keys of a map, in the order of the file; keys[i] names items[i]
  std::vector<SpecNode> items;

  SpecNode* find(std::string_view key);
  const SpecNode* find(std::string_view key) const;
  SpecNode& insert(std::string_view key);  // returns the item with this key, after adding it if the map lacks it
};

// A key that occurs twice in one map of a file.
struct TwiceGiven {
  std::string key;
  int line = 0;  // line of the file at which the key occurs the second time
};

// Reads one document. Throws Error ("spec.yaml:3: ...") on bad syntax, a key given twice, more than one document, more
// than 4 MiB of text, nesting deeper than 32, or aliases that expand to more than 100,000 values. twice: if not null, a
// key given twice is no error: its last value counts, as in other programs that read YAML, and the key is added to the
// list.
SpecNode parse_tree(std::string_view text, const std::string& path, std::vector<TwiceGiven>* twice = nullptr);

// Returns the tree as YAML without comments, one key or item in each line, from which parse_tree() reads the same
// values.
std::string print_tree(const SpecNode& root);

}  // namespace orrery
