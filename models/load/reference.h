#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// A key of a map of the spec: the reader rejects every other key, and docs/reference.md shows these. For a plain value
// the reader knows type and default by itself. values: the words that a key accepts, or the kind of a value that is
// read in some other way. otherwise: the default in words, if it depends on other keys.
struct SpecKey {
  std::string_view name, meaning, example, values = "", otherwise = "";
};

// Maps and types of a spec, recorded while the reader reads them, by path such as "strategy.overlap".
struct SpecKeyBook {
  struct Map {
    std::string path;
    std::span<const SpecKey> keys;
    std::string_view short_key;  // the key that a single word in the map's place stands for; "": none does
  };
  std::vector<Map> maps;                     // in the order of reading
  std::map<std::string, std::string> types;  // by full key
};

// A key as docs/reference.md prints it: {"strategy.bucket_MiB", "number", "MiB", "the stack's", "gradients in a bucket;
// ...", "25"}. short_key: of a map that may be given as a single word, the key that the word is the value of.
struct KeyReference {
  std::string key, type, unit, otherwise, meaning, example, short_key;
};

// All keys of a spec, in the order in which a spec is written. They come from the parser itself: it parses small specs
// of all maps and records the keys that it accepts, their types, and the defaults of absent keys.
std::vector<KeyReference> spec_reference();

}  // namespace orrery
