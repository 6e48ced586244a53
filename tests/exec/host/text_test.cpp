#include "exec/host/text.h"

#include <fstream>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

std::vector<std::int64_t> copied(const Text& text, std::int64_t sample, std::int64_t sequence, bool labels) {
  std::vector<std::int64_t> to(static_cast<std::size_t>(sequence));
  text.copy(sample, sequence, {0, sequence}, labels, to.data());
  return to;
}

std::string alphabet(std::size_t size) {
  std::string s(size, ' ');
  std::iota(s.begin(), s.end(), '\0');
  return s;
}

// Labels are the tokens after the inputs; samples follow each other, and begin again at the end of the text.
TEST(Text, CutsSamplesOneAfterAnother) {
  for (std::int64_t sequence = 1; sequence < 12; ++sequence) {
    const Text text = checked_text(alphabet(23), 256, sequence);
    for (std::int64_t sample = 0; sample < 50; ++sample) {
      const auto tokens = copied(text, sample, sequence, false), labels = copied(text, sample, sequence, true);
      EXPECT_EQ(tokens[0], sample * sequence % (23 - sequence));
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        EXPECT_EQ(labels[i], tokens[i] + 1);
        EXPECT_EQ(tokens[i], tokens[0] + static_cast<std::int64_t>(i));
        EXPECT_LT(labels[i], 23);
      }
    }
  }
}

TEST(Text, FoldsBytesIntoASmallVocabulary) {
  const Text text = checked_text("\xff\xfe" + alphabet(10), 7, 4);
  EXPECT_EQ(copied(text, 0, 4, false), (std::vector<std::int64_t>{255 % 7, 254 % 7, 0, 1}));
}

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Text, RefusesWhatIsTooShortOrCannotBeRead) {
  EXPECT_EQ(refusal([] { checked_text("1234", 256, 3, "short.txt"); }),
            "short.txt: 4 bytes are too few for a sequence of 3");
  EXPECT_NO_THROW(checked_text("12345", 256, 3));
  EXPECT_EQ(refusal([] { read_text("/nowhere.txt", 256, 3); }),
            "/nowhere.txt: cannot be read: No such file or directory");
  EXPECT_EQ(refusal([] { read_text("/usr", 256, 3); }), "/usr: cannot be read: Is a directory");
  const test::TemporaryFolder folder;
  const std::string path = folder.path("text.txt");
  std::ofstream(path) << "abcdef";
  EXPECT_EQ(copied(read_text(path, 256, 3), 1, 3, false), (std::vector<std::int64_t>{'a', 'b', 'c'}));
}

}  // namespace
}  // namespace orrery
