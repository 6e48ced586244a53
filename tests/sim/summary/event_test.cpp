#include "sim/summary/event.h"

#include <zlib.h>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/sim/summary/layouts.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

using layouts::TraceFile;

std::string event_refusal(const std::string& path) {
  try {
    read_trace(path, {.event = [](const TraceEvent&) {}});
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code, 2);
    return e.what();
  }
  return "";
}

std::string refusal_of(std::string_view text) {
  const TraceFile file(text);
  const std::string line = event_refusal(file.path());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  return line.starts_with(file.path()) ? line.substr(file.path().size()) : line;
}

TEST(TraceEvents, EveryEventAndMemberIsRead) {
  const TraceFile file(R"({"a": [1, {"b": "}"}], "traceEvents": [{"ph": "X", "name": "k", "args": {"correlation": 7}},
    {"ph":"M"}], "last": -1.5e3})");
  std::vector<std::string> seen;
  read_trace(
      file.path(),
      {.event = [&](const TraceEvent& e) { seen.push_back(std::string(e.phase) + std::string(e.args.correlation)); },
       .member = [&](std::string_view key,
                     std::string_view value) { seen.push_back(std::string(key) + "=" + std::string(value)); }});
  EXPECT_EQ(seen, (std::vector<std::string>{"a=[1, {\"b\": \"}\"}]", "X7", "M", "last=-1.5e3"}));
}

TEST(TraceEvents, ListWithoutAnObjectIsATrace) {
  const TraceFile file(R"([{"ph":"X"},{"ph":"X"}])");
  int events = 0;
  read_trace(file.path(), {.event = [&](const TraceEvent&) { ++events; }});
  EXPECT_EQ(events, 2);
}

// Events lie across the ends of the pieces that are read at a time, and one is longer than a piece.
TEST(TraceEvents, AByteOrderMarkIsPassedOver) {
  const TraceFile file("\xef\xbb\xbf[{\"ph\": \"X\", \"name\": \"a\"}]");
  std::vector<std::string> names;
  TraceReaders readers;
  readers.event = [&](const TraceEvent& e) { names.emplace_back(e.name); };
  read_trace(file.path(), readers);
  EXPECT_EQ(names, (std::vector<std::string>{"a"}));
}

TEST(TraceEvents, PiecesOfTheFileMeetAnywhere) {
  std::string text = "{\"traceEvents\": [";
  for (int i = 0; i < 60000; ++i) text += fmt::format("{{\"name\": \"kernel {}\", \"ts\": {}.5}},\n", i, i);
  text += "{\"name\": \"" + std::string(5 << 20, 'x') + "\"}]}";
  const TraceFile file(text);
  int events = 0;
  std::size_t longest = 0;
  read_trace(file.path(), {.event = [&](const TraceEvent& e) {
               if (events < 60000) {
                 EXPECT_EQ(e.name, fmt::format("kernel {}", events));
                 EXPECT_EQ(e.ts, fmt::format("{}.5", events));
               }
               ++events;
               longest = std::max(longest, e.name.size());
             }});
  EXPECT_EQ(events, 60001);
  EXPECT_EQ(longest, std::size_t{5} << 20);
}

// The rest of the arguments is skipped once the ids are known, whatever brackets and quotes it holds.
TEST(TraceEvents, ArgumentsAfterTheIdsAreSkipped) {
  const TraceFile file(
      R"([{"ph":"X","cat":"kernel","args":{"External id":5,"correlation":6,"s":"}]\"","grid":[1,{"a":"]"}]},"ts":7},
          {"ph":"X","cat":"cpu_op","args":{"External id":8,"correlation":9},"ts":10}])");
  std::vector<std::string> seen;
  read_trace(file.path(), {.event = [&](const TraceEvent& e) {
               seen.push_back(fmt::format("{} {} {}", e.args.external, e.args.correlation, e.ts));
             }});
  EXPECT_EQ(seen, (std::vector<std::string>{"5 6 7", "8  10"}));
}

TEST(TraceEvents, DamageIsNamedWithItsLine) {
  EXPECT_EQ(refusal_of(""), ":1: is empty; give a trace of torch.profiler or of orrery --trace");
  EXPECT_NE(refusal_of("schema: 1\n").find(":1: is no JSON"), std::string::npos);
  EXPECT_NE(refusal_of("{\"schema\": 1}\n").find("has no list traceEvents"), std::string::npos);
  EXPECT_NE(refusal_of("{\"traceEvents\": [\n{\"ph\": \"X\"},\n{\"ph\": \"X\", \"na").find(":3: the file is cut short"),
            std::string::npos);
  EXPECT_NE(refusal_of("{\"traceEvents\": [\n{\"ph\": \"X\"},\n").find("cut short"), std::string::npos);
  EXPECT_NE(refusal_of("{\"traceEvents\": [\n{\"ph\": \"X\"}]\n").find("cut short"), std::string::npos);
  EXPECT_NE(refusal_of("{\"traceEvents\": [\n{\"ph\": \"X\"},\n 17,\n{}]}").find("neither a value nor an event"),
            std::string::npos);
  EXPECT_NE(refusal_of("{\"traceEvents\": []} more").find("more text follows"), std::string::npos);
  EXPECT_NE(event_refusal("/nowhere/trace.json").find("/nowhere/trace.json: cannot be read: No such file"),
            std::string::npos);
  EXPECT_NE(event_refusal("/tmp").find("/tmp: cannot be read: Is a directory"), std::string::npos);
}

std::string packed(const std::string& text) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("packed.gz");
  const gzFile out = gzopen(path.c_str(), "wb");
  gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
  gzclose(out);
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(TraceEvents, GzippedFilesAreReadAndBrokenOnesRefused) {
  std::string text = "{\"traceEvents\": [{\"ph\": \"X\"}";
  for (int i = 0; i < 20000; ++i) text += fmt::format(",\n{{\"ph\": \"X\", \"ts\": {}}}", i * 7919 % 10007);
  const std::string bytes = packed(text + "]}");
  EXPECT_EQ(refusal_of(bytes), "");
  EXPECT_NE(refusal_of(bytes.substr(0, bytes.size() / 2)).find("its compressed data is cut short"), std::string::npos);
  std::string damaged = bytes;
  for (std::size_t i = 0; i < 64; ++i) damaged[damaged.size() / 2 + i] = '\x55';
  EXPECT_NE(refusal_of(damaged).find("cannot be read further"), std::string::npos);
}

}  // namespace
}  // namespace orrery
