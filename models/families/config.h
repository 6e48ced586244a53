#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace orrery {

using Keys = std::initializer_list<const char*>;  // names of one key, of which a file has one

// The keys of a config.json, or of the part of it that describes the text model. A key that the file leaves out has the
// value that the family's configuration class gives it; a null counts as written, and is no value. Errors are
// orrery::Error, one line "file: key: what".
class Config {
 public:
  // object must outlive the Config. nested: whether the object lies within the file's object.
  Config(const nlohmann::json& object, std::string path, bool nested = false);

  // Takes the class's values of the family as those of absent keys. defaults: a JSON object.
  void set_defaults(std::string_view defaults);

  [[noreturn]] void fail(std::string_view key, std::string_view what) const;

  // The value of the first key that has one, or null.
  const nlohmann::json* find(Keys keys) const;
  // The same of the file alone.
  const nlohmann::json* written(Keys keys) const;
  bool has(const char* key) const { return object_.contains(key); }  // true for a null too

  std::int64_t count(Keys keys, std::int64_t absent) const;
  std::int64_t count(Keys keys) const;  // fails where there is none
  // A size that the whole model hangs on: a file has to give it. A text model within a file may leave it to its class,
  // since files of several models hold only what differs from the class.
  std::int64_t size(Keys keys) const;
  bool flag(Keys keys, bool absent) const;
  double real(Keys keys, double absent) const;
  std::string text(Keys keys) const;  // "" where there is none
  // An object within this one, with errors of its own keys; an empty one where the key is absent.
  Config part(const char* key) const;

  // "key value" of each value that was taken from the class and decides something: neither false, nor zero, nor null.
  const std::vector<std::string>& taken() const { return taken_; }

 private:
  const nlohmann::json& object_;
  std::string path_;
  bool nested_;
  nlohmann::json defaults_ = nlohmann::json::object();
  mutable std::vector<std::string> taken_;
};

// The text of a JSON file with Python's words NaN, Infinity and -Infinity, which JSON does not have, in quotes: a key
// that needs a number then says so. Words within strings stay.
std::string with_quoted_words(std::string_view text);

}  // namespace orrery
