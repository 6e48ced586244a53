#include "models/families/config.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/families/hugging_face.h"

namespace orrery {
namespace {

TEST(Config, TakesTheClassesValueOnlyOfAbsentKeys) {
  const nlohmann::json object = {{"written", 3}, {"empty", nullptr}};
  Config config(object, "config.json");
  config.set_defaults(R"({"written": 5, "empty": 6, "absent": 7, "off": false})");
  EXPECT_EQ(config.count({"written"}, 0), 3);
  EXPECT_EQ(config.count({"empty"}, 1), 1);
  EXPECT_EQ(config.count({"absent"}, 0), 7);
  EXPECT_EQ(config.count({"other", "absent"}, 0), 7);
  EXPECT_FALSE(config.flag({"off"}, true));
  EXPECT_EQ(config.taken(), std::vector<std::string>{"absent 7"});
  EXPECT_THROW(config.size({"absent"}), Error);
  Config nested(object, "config.json", true);
  nested.set_defaults(R"({"absent": 7})");
  EXPECT_EQ(nested.size({"absent"}), 7);
}

// Python writes words that JSON does not have: they are read, and a size that needs a number says so.
TEST(Config, QuotesPythonsWords) {
  EXPECT_EQ(with_quoted_words(R"({"a": NaN, "b": [-Infinity, Infinity], "NaN": "Infinity \" NaN"})"),
            R"({"a": "NaN", "b": ["-Infinity", "Infinity"], "NaN": "Infinity \" NaN"})");
  try {
    parse_hugging_face(R"({"model_type": "llama", "num_hidden_layers": Infinity})", "config.json");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "config.json: num_hidden_layers: \"Infinity\" is not a sensible whole number");
  }
}

}  // namespace
}  // namespace orrery
