#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// A key of a map of the spec: the reader refuses every other key, and docs/reference.md shows these. The reader knows
// type and default by itself where it takes a plain value. values: the words that a key takes, or the kind of a value
// that is read in some other way. otherwise: the default in words, where one depends on others.
struct SpecKey {
  std::string_view name, meaning, example, values = "", otherwise = "";
};

// Maps and types of a spec, as the reader comes upon them: by path, "strategy.overlap".
struct SpecKeyBook {
  struct Map {
    std::string path;
    std::span<const SpecKey> keys;
  };
  std::vector<Map> maps;                     // in the order of reading
  std::map<std::string, std::string> types;  // by full key
};

// A key in full, for people: {"strategy.bucket_MiB", "number", "MiB", "the stack's", "gradients in a bucket; ...",
// "25"}.
struct KeyReference {
  std::string key, type, unit, otherwise, meaning, example;
};

// All keys of a spec, in the order in which a spec is written. Read from the parser: it parses small specs of all maps
// and tells what it accepts, of what type, and what stands where a key is absent.
std::vector<KeyReference> spec_reference();

}  // namespace orrery
