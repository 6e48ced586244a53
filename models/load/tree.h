#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// A YAML or JSON text as a tree whose nodes remember their lines. It does not depend on the spec's keys.
struct SpecNode {
  enum class Kind : unsigned char { null, scalar, list, map };
  Kind kind = Kind::null;
  int line = 0;                   // line of the text, from 1; 0 = given by --set
  std::string text;               // text of a scalar
  std::vector<std::string> keys;  // keys of a map, in the order of the text; keys[i] names items[i]
  std::vector<SpecNode> items;

  SpecNode* find(std::string_view key);
  const SpecNode* find(std::string_view key) const;
  SpecNode& insert(std::string_view key);  // the item of a key, made if need be
};

// A key that stands twice in one map of a text.
struct TwiceGiven {
  std::string key;
  int line = 0;  // line of the later one
};

// Reads one document. Throws Error ("spec.yaml:3: ...") on bad syntax, a key given twice, more than one document, a
// text of more than 4 MiB, nesting deeper than 32, or aliases that expand to more than 100,000 values. twice: if given,
// the last one of equal keys counts, as other programs read YAML, and the key is added to the list.
SpecNode parse_tree(std::string_view text, const std::string& path, std::vector<TwiceGiven>* twice = nullptr);

// The tree as YAML, a key or item a line, without comments: parse_tree() reads the same values from it.
std::string print_tree(const SpecNode& root);

}  // namespace orrery
