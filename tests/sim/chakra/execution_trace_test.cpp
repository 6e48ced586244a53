#include "sim/chakra/execution_trace.h"

#include <random>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "sim/chakra/wire.h"

namespace orrery {
namespace {

ChakraNode random_node(std::mt19937_64& random, std::uint64_t id) {
  constexpr CollectiveKind kKinds[] = {CollectiveKind::all_reduce,     CollectiveKind::all_gather,
                                       CollectiveKind::reduce_scatter, CollectiveKind::all_to_all,
                                       CollectiveKind::broadcast,      CollectiveKind::gather};
  ChakraNode n = {.id = id, .name = "node " + std::to_string(id)};
  n.kind = static_cast<ChakraNode::Kind>(random() % 5);
  for (std::uint64_t before = id; before > 0 && n.waits_for.size() < random() % 3; --before)
    n.waits_for.push_back(before - 1);
  n.start_us = random() % 1000;
  n.duration_us = random() % 1000;
  n.on_host = random() % 2 == 0;
  if (n.kind == ChakraNode::Kind::other) return n;
  n.bytes = random() % (std::uint64_t{1} << 40);
  if (n.kind == ChakraNode::Kind::compute)
    n.operations = static_cast<std::int64_t>(random() % (std::uint64_t{1} << 50));
  if (n.kind == ChakraNode::Kind::collective) {
    n.collective = kKinds[random() % std::size(kKinds)];
    n.group = random() % 3 == 0 ? "" : std::to_string(random() % 9);
  }
  if (n.kind == ChakraNode::Kind::send || n.kind == ChakraNode::Kind::receive) {
    n.peer = static_cast<std::int64_t>(random() % 64);
    n.tag = static_cast<std::int64_t>(random() % 64);
  }
  return n;
}

TEST(ExecutionTrace, ReadsWhatItWrites) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    ChakraTrace trace;
    for (std::uint64_t id = 0; id < random() % 20; ++id) trace.nodes.push_back(random_node(random, id));
    EXPECT_EQ(read_chakra(chakra_text(trace), "t.et"), trace);
  }
}

std::string refusal(const std::string& bytes) {
  try {
    read_chakra(bytes, "t.et");
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code, 2);
    return e.what();
  }
}

// Any prefix that does not end between two messages is refused, in one line.
TEST(ExecutionTrace, RefusesEveryTruncation) {
  ChakraTrace trace;
  for (std::uint64_t id = 0; id < 3; ++id)
    trace.nodes.push_back({.id = id, .name = "a", .kind = ChakraNode::Kind::compute});
  const std::string whole = chakra_text(trace);
  int accepted = 0;
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const std::string why = refusal(whole.substr(0, n));
    accepted += why.empty() ? 1 : 0;
    EXPECT_EQ(why.find('\n'), std::string::npos);
  }
  EXPECT_EQ(accepted, 3);  // after the metadata, after one node, after two
}

std::string trace_of(std::initializer_list<ChakraNode> nodes) { return chakra_text({nodes}); }

TEST(ExecutionTrace, RefusesWhatCannotRun) {
  EXPECT_NE(refusal("").find("the file is empty"), std::string::npos);
  EXPECT_NE(refusal(trace_of({{.id = 1}, {.id = 1}})).find("node 1 is there twice"), std::string::npos);
  EXPECT_NE(refusal(trace_of({{.id = 1, .waits_for = {7}}})).find("node 1 waits for node 7"), std::string::npos);
  EXPECT_NE(refusal("{\"traceEvents\": []}").find("give a Chakra execution trace"), std::string::npos);
}

// Traces of PyTorch, converted, give dependencies packed in one field and of both kinds.
TEST(ExecutionTrace, ReadsPackedDependenciesAndUnknownFields) {
  WireWriter node, stream, ids;
  node.number(1, 2);
  node.number(3, 4);
  node.text(4, std::string("\x00", 1));
  node.text(5, std::string("\x01", 1));
  node.text(8, "inputs");
  stream.delimited("");
  for (const int id : {0, 1}) {
    WireWriter before;
    before.number(1, static_cast<std::uint64_t>(id));
    before.number(3, 1);
    stream.delimited(before.bytes());
  }
  stream.delimited(node.bytes());
  const ChakraTrace trace = read_chakra(stream.bytes(), "t.et");
  EXPECT_EQ(trace.nodes.at(2).waits_for, (std::vector<std::uint64_t>{0, 1}));
  EXPECT_EQ(trace.nodes.at(0).kind, ChakraNode::Kind::other);
}

}  // namespace
}  // namespace orrery
