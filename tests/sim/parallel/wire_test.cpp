#include "sim/parallel/wire.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

struct Parts {
  int number = 7;
  std::string text = "seven";
  std::string_view name = "prime";
};
void share(Wire& wire, Parts& p) {
  wire.share(p.number);
  wire.share(p.text);
  wire.share(p.name);
}

std::string written() {
  Wire wire;
  Parts p;
  share(wire, p);
  return wire.take();
}

TEST(Wire, BringsBackWhatWasWritten) {
  WireNames names;
  const std::string bytes = written();
  Wire wire(bytes, names);
  Parts p{0, "", ""};
  share(wire, p);
  wire.end();
  EXPECT_EQ(p.number, 7);
  EXPECT_EQ(p.text, "seven");
  EXPECT_EQ(p.name, "prime");
}

// A message that is cut short, or longer than the part that is read, was written by another program.
TEST(Wire, RefusesWhatOtherCallsWrote) {
  const std::string bytes = written();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    WireNames names;
    const std::string cut = bytes.substr(0, size);
    Wire wire(cut, names);
    Parts p;
    EXPECT_THROW(share(wire, p), Error) << size;
  }
  WireNames names;
  const std::string more = bytes + '!';
  Wire wire(more, names);
  Parts p;
  share(wire, p);
  EXPECT_THROW(wire.end(), Error);
}

}  // namespace
}  // namespace orrery
