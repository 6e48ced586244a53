#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace orrery {

// A value of a JSON file that knows its path within the file, so that every error message is one line "file: key: what;
// advice". Functions that read the value check types and ranges, and never show an error text of the JSON library. It
// holds a pointer into the parsed file, which must outlive it. A JSON null counts as absent. The template's argument
// Json is nlohmann::json, or nlohmann::ordered_json where the order of keys matters.
template <class Json>
class BasicJsonValue {
 public:
  // file: name of the file, followed by the element's number ("rows.json: row 3") where the file is a list of elements.
  // advice: text that ends each error message, "write it with ...", or "".
  BasicJsonValue(const Json& value, std::string file, std::string advice = "")
      : value_(&value), origin_(std::make_shared<const Origin>(Origin{std::move(file), std::move(advice)})) {}

  [[noreturn]] void fail(std::string_view what) const;
  [[noreturn]] void fail(std::string_view member, std::string_view what) const;

  bool is_object() const;
  bool is_list() const;
  bool is_text() const;
  bool is_number() const;
  const Json& raw() const { return *value_; }
  const std::string& key() const { return key_; }

  // These functions return members of an object; find() returns nothing if there is no such member.
  BasicJsonValue at(std::string_view key) const;
  std::optional<BasicJsonValue> find(std::string_view key) const;
  std::vector<std::pair<std::string, BasicJsonValue>> members() const;
  std::vector<BasicJsonValue> items() const;  // returns the elements of a list
  void require_object() const;
  // Throws Error if the value is an object that has a member whose name is not in `keys`.
  void require_known(const std::vector<std::string_view>& keys) const;

  double number(double least, double most) const;                   // returns a finite number from least to most
  double positive(double most) const;                               // returns a number above 0 and at most `most`
  std::int64_t whole(std::int64_t least, std::int64_t most) const;  // returns an integer from least to most
  bool flag() const;
  std::string text() const;
  std::vector<double> numbers(double least, double most) const;

  // These functions return the value of a member of an object, or `absent` if the object has no such member.
  double number_or(std::string_view key, double absent, double least, double most) const;
  std::int64_t whole_or(std::string_view key, std::int64_t absent, std::int64_t least, std::int64_t most) const;
  bool flag_or(std::string_view key, bool absent) const;
  std::string text_or(std::string_view key, std::string absent) const;

 private:
  struct Origin {
    std::string file, advice;
  };
  BasicJsonValue(const Json& value, const BasicJsonValue& parent, std::string key)
      : value_(&value), origin_(parent.origin_), key_(std::move(key)) {}
  std::string quoted() const;  // returns the value as text, shortened to fit in an error message
  std::string key_of(std::string_view member) const;

  const Json* value_;
  std::shared_ptr<const Origin> origin_;
  std::string key_;  // path of the value in the file: "measured.ops[2].kind"; "" for the outermost value
};

using JsonValue = BasicJsonValue<nlohmann::json>;
using OrderedJsonValue = BasicJsonValue<nlohmann::ordered_json>;

// Parses a JSON file's contents; throws Error "path:line: is no JSON: ...; advice" if they are malformed or nested too
// deeply.
nlohmann::json parse_json(const std::string& path, std::string_view text,
                          std::string_view advice = "write it again with the tool it is from");
nlohmann::ordered_json parse_ordered_json(const std::string& path, std::string_view text, std::string_view advice);

// The string member `key` of an object; "" if the value is no object or has no string member `key`.
std::string text_in(const nlohmann::json& object, const char* key);

// The line number, counted from 1, of the byte at offset `byte` of a text.
std::size_t line_of(std::string_view text, std::size_t byte);

}  // namespace orrery
