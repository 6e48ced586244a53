#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// A YAML or JSON text as a tree that remembers its lines. It knows nothing of the spec's keys.
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

// Reads one document. Throws Error ("spec.yaml:3: ...") on bad syntax, a key given twice, more than one document, a
// text of more than 4 MiB, nesting deeper than 32, or aliases that expand to more than 100,000 values.
SpecNode parse_tree(std::string_view text, const std::string& path);

}  // namespace orrery
