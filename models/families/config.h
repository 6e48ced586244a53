#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace orrery {

using Keys = std::initializer_list<const char*>;  // alternative names of one key, of which a file has at most one

// The keys and values of a Hugging Face config.json, or of the object within it that describes the text model. A key
// that the file leaves out has the value that the configuration class of the model family gives it; a key whose value
// is null counts as present, but has no value. Errors are orrery::Error, one line "file: key: what".
class Config {
 public:
  // object must outlive the Config. nested: whether the object lies within the file's outermost object.
  Config(const nlohmann::json& object, std::string path, bool nested = false);

  // Sets the values of keys that the file leaves out to the defaults of the family's configuration class. defaults:
  // these defaults as a JSON object.
  void set_defaults(std::string_view defaults);

  [[noreturn]] void fail(std::string_view key, std::string_view what) const;

  // Returns the value of the first of the keys that has a value, in the file or by default; null if none has.
  const nlohmann::json* find(Keys keys) const;
  // Returns the value of the first of the keys that has a value in the file itself; null if none has.
  const nlohmann::json* written(Keys keys) const;
  // Returns whether the file has the key, even if the key's value is null.
  bool has(const char* key) const { return object_.contains(key); }

  std::int64_t count(Keys keys, std::int64_t absent) const;
  std::int64_t count(Keys keys) const;  // throws Error if none of the keys has a value
  // Returns the value of a key that the file must state, such as the number of layers; throws Error if the file has
  // none of the keys. If this object describes the text model within a file of several models, a default of the
  // configuration class is accepted too, since such a file states only what differs from the class.
  std::int64_t size(Keys keys) const;
  bool flag(Keys keys, bool absent) const;
  double real(Keys keys, double absent) const;
  std::string text(Keys keys) const;  // returns the text of the first key that has one, else ""
  // Returns the object that is the key's value, as a Config whose errors name the keys within that object; an empty
  // object if the key is absent.
  Config part(const char* key) const;

  // Returns, as "key value", each value that was taken from the configuration class and is neither false, nor zero, nor
  // null.
  const std::vector<std::string>& taken() const { return taken_; }

 private:
  const nlohmann::json& object_;
  std::string path_;
  bool nested_;
  nlohmann::json defaults_ = nlohmann::json::object();
  mutable std::vector<std::string> taken_;
};

// Returns the contents of a JSON file with Python's words NaN, Infinity and -Infinity, which JSON does not have, put in
// quotes, so that a key that needs a number reports them as wrong. Words within strings stay unchanged.
std::string with_quoted_words(std::string_view text);

}  // namespace orrery
