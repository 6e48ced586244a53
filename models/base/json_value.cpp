#include "models/base/json_value.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/base/names.h"

namespace orrery {
namespace {

constexpr std::size_t kLongestQuote = 60;  // greatest number of characters of a value that an error message quotes
// Greatest number of levels of nesting: the JSON library prints and frees values by recursion, which could overflow the
// stack
constexpr int kDeepestJson = 256;
// Largest integer that is accepted: below 2^63, so that a conversion from double cannot overflow
constexpr double kWholeLimit = 9.0e18;

// Returns the offset of the first bracket outside strings that is nested too deeply; npos if there is none.
std::size_t too_deep_at(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      i += c == '\\' ? 1 : 0;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestJson) return i;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return std::string_view::npos;
}

template <class Json>
Json parse_as(const std::string& path, std::string_view text, std::string_view advice) {
  if (const std::size_t deep = too_deep_at(text); deep != std::string_view::npos)
    throw Error(
        fmt::format("{}:{}: nested deeper than {} levels; {}", path, line_of(text, deep), kDeepestJson, advice));
  try {
    return Json::parse(text);
  } catch (const typename Json::parse_error& e) {
    const std::size_t at = std::min<std::size_t>(e.byte > 0 ? e.byte - 1 : 0, text.size());
    const bool cut = e.byte >= text.size();
    throw Error(fmt::format("{}:{}: is no JSON: {}", path, line_of(text, at),
                            cut ? "it ends too soon; give the whole file" : advice));
  } catch (const typename Json::exception&) {
    throw Error(fmt::format("{}: is no JSON: a number in it is too large; {}", path, advice));
  }
}

}  // namespace

static std::string refusal(const std::string& file, const std::string& key, std::string_view what,
                           const std::string& advice) {
  return printable(
      fmt::format("{}: {}{}{}{}{}", file, key, key.empty() ? "" : ": ", what, advice.empty() ? "" : "; ", advice));
}

template <class Json>
void BasicJsonValue<Json>::fail(std::string_view what) const {
  throw Error(refusal(origin_->file, key_, what, origin_->advice));
}

template <class Json>
void BasicJsonValue<Json>::fail(std::string_view member, std::string_view what) const {
  throw Error(refusal(origin_->file, key_of(member), what, origin_->advice));
}

template <class Json>
std::string BasicJsonValue<Json>::key_of(std::string_view member) const {
  return key_.empty() ? std::string(member) : fmt::format("{}.{}", key_, member);
}

template <class Json>
std::string BasicJsonValue<Json>::quoted() const {
  if (value_->is_object()) return "an object";
  if (value_->is_array()) return "a list";
  const std::string text = value_->dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= kLongestQuote ? text : text.substr(0, kLongestQuote) + "...";
}

template <class Json>
bool BasicJsonValue<Json>::is_object() const {
  return value_->is_object();
}
template <class Json>
bool BasicJsonValue<Json>::is_list() const {
  return value_->is_array();
}
template <class Json>
bool BasicJsonValue<Json>::is_text() const {
  return value_->is_string();
}
template <class Json>
bool BasicJsonValue<Json>::is_number() const {
  return value_->is_number();
}

template <class Json>
void BasicJsonValue<Json>::require_object() const {
  if (!is_object()) fail(fmt::format("{} stands where an object {{...}} is needed", quoted()));
}

template <class Json>
std::optional<BasicJsonValue<Json>> BasicJsonValue<Json>::find(std::string_view key) const {
  require_object();
  const auto found = value_->find(std::string(key));
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return BasicJsonValue(*found, *this, key_of(key));
}

template <class Json>
BasicJsonValue<Json> BasicJsonValue<Json>::at(std::string_view key) const {
  const auto found = find(key);
  if (!found) fail(key, "is missing");
  return *found;
}

template <class Json>
std::vector<std::pair<std::string, BasicJsonValue<Json>>> BasicJsonValue<Json>::members() const {
  require_object();
  std::vector<std::pair<std::string, BasicJsonValue>> list;
  for (auto it = value_->begin(); it != value_->end(); ++it) {
    if (it->is_null()) continue;
    list.emplace_back(it.key(), BasicJsonValue(*it, *this, key_of(it.key())));
  }
  return list;
}

template <class Json>
std::vector<BasicJsonValue<Json>> BasicJsonValue<Json>::items() const {
  if (!is_list()) fail(fmt::format("{} stands where a list [...] is needed", quoted()));
  std::vector<BasicJsonValue> list;
  list.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i)
    list.push_back(BasicJsonValue((*value_)[i], *this, fmt::format("{}[{}]", key_, i)));
  return list;
}

template <class Json>
void BasicJsonValue<Json>::require_known(const std::vector<std::string_view>& keys) const {
  for (const auto& [key, value] : members()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) fail(unknown_name("key", key, keys));
  }
}

template <class Json>
double BasicJsonValue<Json>::number(double least, double most) const {
  const double x = is_number() ? value_->template get<double>() : std::nan("");
  if (!std::isfinite(x)) fail(fmt::format("{} is not a number", quoted()));
  if (x < least || x > most) fail(fmt::format("{} is not between {:g} and {:g}", quoted(), least, most));
  return x;
}

template <class Json>
double BasicJsonValue<Json>::positive(double most) const {
  const double x = number(-std::numeric_limits<double>::max(), most);
  if (!(x > 0)) fail(fmt::format("{} is not above 0", quoted()));
  return x;
}

// Returns the JSON value as a 64-bit integer; nothing if the value is too large for one.
template <class Json>
static std::optional<std::int64_t> whole_in_64_bits(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto n = value.template get<std::uint64_t>();
    return n <= static_cast<std::uint64_t>(INT64_MAX) ? std::optional(static_cast<std::int64_t>(n)) : std::nullopt;
  }
  if (value.is_number_integer()) return value.template get<std::int64_t>();
  const double x = value.template get<double>();
  return std::abs(x) < kWholeLimit ? std::optional(static_cast<std::int64_t>(x)) : std::nullopt;
}

template <class Json>
std::int64_t BasicJsonValue<Json>::whole(std::int64_t least, std::int64_t most) const {
  const double x = is_number() ? value_->template get<double>() : std::nan("");
  if (!std::isfinite(x) || x != std::floor(x)) fail(fmt::format("{} is not a whole number", quoted()));
  const auto n = whole_in_64_bits(*value_);
  if (!n || *n < least || *n > most) fail(fmt::format("{} is not between {} and {}", quoted(), least, most));
  return *n;
}

template <class Json>
bool BasicJsonValue<Json>::flag() const {
  if (!value_->is_boolean()) fail(fmt::format("{} is not true or false", quoted()));
  return value_->template get<bool>();
}

template <class Json>
std::string BasicJsonValue<Json>::text() const {
  if (!is_text()) fail(fmt::format("{} stands where a text is needed", quoted()));
  return value_->template get<std::string>();
}

template <class Json>
std::vector<double> BasicJsonValue<Json>::numbers(double least, double most) const {
  std::vector<double> list;
  for (const BasicJsonValue& item : items()) list.push_back(item.number(least, most));
  return list;
}

template <class Json>
double BasicJsonValue<Json>::number_or(std::string_view key, double absent, double least, double most) const {
  const auto found = find(key);
  return found ? found->number(least, most) : absent;
}

template <class Json>
std::int64_t BasicJsonValue<Json>::whole_or(std::string_view key, std::int64_t absent, std::int64_t least,
                                            std::int64_t most) const {
  const auto found = find(key);
  return found ? found->whole(least, most) : absent;
}

template <class Json>
bool BasicJsonValue<Json>::flag_or(std::string_view key, bool absent) const {
  const auto found = find(key);
  return found ? found->flag() : absent;
}

template <class Json>
std::string BasicJsonValue<Json>::text_or(std::string_view key, std::string absent) const {
  const auto found = find(key);
  return found ? found->text() : std::move(absent);
}

template class BasicJsonValue<nlohmann::json>;
template class BasicJsonValue<nlohmann::ordered_json>;

nlohmann::json parse_json(const std::string& path, std::string_view text, std::string_view advice) {
  return parse_as<nlohmann::json>(path, text, advice);
}

nlohmann::ordered_json parse_ordered_json(const std::string& path, std::string_view text, std::string_view advice) {
  return parse_as<nlohmann::ordered_json>(path, text, advice);
}

std::string text_in(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::size_t line_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte);
  return static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
}

}  // namespace orrery
