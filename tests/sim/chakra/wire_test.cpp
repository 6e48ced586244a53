#include "sim/chakra/wire.h"

#include <gtest/gtest.h>

#include "models/base/error.h"

namespace orrery {
namespace {

const std::string kPath = "t.et";

TEST(Wire, EncodesAsTheFormatsOwnDocumentDoes) {
  WireWriter w;
  w.number(1, 150);  // protobuf.dev/programming-guides/encoding: 08 96 01
  w.text(2, "testing");
  EXPECT_EQ(w.bytes(), std::string("\x08\x96\x01\x12\x07") + "testing");
}

TEST(Wire, ReadsEveryNumberThatItWrites) {
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t value = (std::uint64_t{1} << bit) | 1;
    WireWriter w;
    w.number(7, value);
    WireReader r(w.bytes(), kPath);
    const WireField f = r.field();
    EXPECT_EQ(f.number, 7U);
    EXPECT_EQ(f.value, value);
    EXPECT_TRUE(r.done());
  }
}

TEST(Wire, SkipsFixedWidthsAndReadsTheirValues) {
  const std::string bytes("\x0d\x01\x02\x00\x00\x11\xff\x00\x00\x00\x00\x00\x00\x80", 14);
  WireReader r(bytes, kPath);
  EXPECT_EQ(r.field().value, 0x201U);
  EXPECT_EQ(r.field().value, 0x80000000000000ffU);
}

std::string wire_refusal(const std::string& bytes) {
  try {
    WireReader r(bytes, kPath);
    while (!r.done()) r.field();
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(Wire, RefusesWhatIsCutOrWrongWithItsPlace) {
  EXPECT_NE(wire_refusal("\x08\x96").find("t.et: byte 2: the file ends within a message"), std::string::npos);
  EXPECT_NE(wire_refusal("\x12\x07test").find("ends within"), std::string::npos);
  EXPECT_NE(wire_refusal(std::string("\x08") + std::string(10, '\xff')).find("more than 64 bits"), std::string::npos);
  EXPECT_NE(wire_refusal("\x0b").find("no longer use"), std::string::npos);
  EXPECT_NE(wire_refusal(std::string("\x00\x01", 2)).find("out of range"), std::string::npos);
}

}  // namespace
}  // namespace orrery
