#include "sim/chakra/execution_trace.h"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/names.h"
#include "sim/chakra/wire.h"

namespace orrery {
namespace {

// Field numbers in the public schema of Chakra traces (et_def.proto).
namespace of_metadata {
constexpr std::uint32_t kVersion = 1;
}
namespace of_node {
constexpr std::uint32_t kId = 1, kName = 2, kType = 3, kControl = 4, kData = 5, kStart = 6, kDuration = 7,
                        kAttribute = 10;
}
namespace of_attribute {
constexpr std::uint32_t kName = 1, kInt32 = 7, kInt64 = 9, kUint32 = 11, kUint64 = 13, kBool = 27, kString = 29;
}

// Values of the enum NodeType in the schema of Chakra traces.
struct NodeType {
  std::uint64_t number;
  ChakraNode::Kind kind;
};
constexpr NodeType kNodeTypes[] = {{4, ChakraNode::Kind::compute},
                                   {5, ChakraNode::Kind::send},
                                   {6, ChakraNode::Kind::receive},
                                   {7, ChakraNode::Kind::collective}};
constexpr std::uint64_t kMetadataNode = 1, kMostNodeTypes = 10;

// Values of the enum CollectiveCommType in the schema of Chakra traces. A barrier moves no data; REDUCE_SCATTER_BLOCK
// is read as a reduce-scatter.
struct CommType {
  std::uint64_t number;
  CollectiveKind kind;
  bool barrier = false;
};
constexpr CommType kCommTypes[] = {{0, CollectiveKind::all_reduce},     {1, CollectiveKind::reduce},
                                   {2, CollectiveKind::all_gather},     {3, CollectiveKind::gather},
                                   {4, CollectiveKind::scatter},        {5, CollectiveKind::broadcast},
                                   {6, CollectiveKind::all_to_all},     {7, CollectiveKind::reduce_scatter},
                                   {8, CollectiveKind::reduce_scatter}, {9, CollectiveKind::all_reduce, true}};

struct Attribute {
  std::string_view name, text;
  std::uint64_t value = 0;
};

Attribute read_attribute(WireReader reader) {
  Attribute a;
  while (!reader.done()) {
    const WireField f = reader.field();
    switch (f.number) {
      case of_attribute::kName:
        a.name = f.text;
        break;
      case of_attribute::kString:
        a.text = f.text;
        break;
      case of_attribute::kInt32:
      case of_attribute::kInt64:
      case of_attribute::kUint32:
      case of_attribute::kUint64:
      case of_attribute::kBool:
        a.value = f.value;
        break;
      default:
        break;
    }
  }
  return a;
}

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;  // most bytes of one operation, more than any memory holds

std::int64_t count_of(const WireReader& reader, const Attribute& a, std::uint64_t most) {
  if (a.value > most) reader.fail(fmt::format("{}: {} is above {}", a.name, a.value, most));
  return static_cast<std::int64_t>(a.value);
}

void set_attribute(ChakraNode& node, const Attribute& a, const WireReader& reader) {
  constexpr std::uint64_t kMostRank = 10'000'000, kMostOperations = std::uint64_t{1} << 62;
  if (a.name == "is_cpu_op") node.on_host = a.value != 0;
  if (a.name == "num_ops") node.operations = count_of(reader, a, kMostOperations);
  if (a.name == "tensor_size" || a.name == "comm_size")
    node.bytes = static_cast<std::uint64_t>(count_of(reader, a, kMostBytes));
  if (a.name == "comm_src" && node.kind == ChakraNode::Kind::receive) node.peer = count_of(reader, a, kMostRank);
  if (a.name == "comm_dst" && node.kind == ChakraNode::Kind::send) node.peer = count_of(reader, a, kMostRank);
  if (a.name == "comm_tag") node.tag = static_cast<std::int64_t>(a.value);
  if (a.name == "pg_name") node.group = printable(std::string(a.text));
  if (a.name == "comm_type") {
    const auto* type = std::ranges::find(kCommTypes, a.value, &CommType::number);
    if (type == std::end(kCommTypes)) reader.fail(fmt::format("comm_type: {} is no collective", a.value));
    node.collective = type->kind;
    node.barrier = type->barrier;
  }
}

// Appends the numbers of a repeated Protocol Buffers field, which holds one number, or several that are packed.
void add_ids(std::vector<std::uint64_t>& ids, const WireField& f, const WireReader& reader) {
  if (f.text.data() == nullptr) return ids.push_back(f.value);
  WireReader packed = reader.inside(f.text);
  while (!packed.done()) ids.push_back(packed.varint());
}

ChakraNode read_node(WireReader reader) {
  ChakraNode node;
  std::vector<std::string_view> attributes;
  std::uint64_t type = 0;
  while (!reader.done()) {
    const WireField f = reader.field();
    switch (f.number) {
      case of_node::kId:
        node.id = f.value;
        break;
      case of_node::kName:
        node.name = printable(std::string(f.text));
        break;
      case of_node::kType:
        type = f.value;
        break;
      case of_node::kControl:
      case of_node::kData:
        add_ids(node.waits_for, f, reader);
        break;
      case of_node::kStart:
        node.start_us = f.value;
        break;
      case of_node::kDuration:
        node.duration_us = f.value;
        break;
      case of_node::kAttribute:
        attributes.push_back(f.text);
        break;
      default:
        break;
    }
  }
  if (type == 0 || type > kMostNodeTypes) reader.fail(fmt::format("node {}: {} is no type of nodes", node.id, type));
  const auto* known = std::ranges::find(kNodeTypes, type, &NodeType::number);
  if (known != std::end(kNodeTypes)) node.kind = known->kind;
  for (const std::string_view text : attributes) set_attribute(node, read_attribute(reader.inside(text)), reader);
  constexpr std::uint64_t kLongest_us = 1'000'000'000'000;  // longest duration of a node: eleven days
  if (node.duration_us > kLongest_us) reader.fail(fmt::format("node {}: lasts {} us", node.id, node.duration_us));
  return node;
}

std::string attribute_text(std::string_view name, std::uint32_t field, std::uint64_t value) {
  WireWriter w;
  w.text(of_attribute::kName, name);
  w.number(field, value);
  return w.bytes();
}

void add_attributes(WireWriter& w, const ChakraNode& node) {
  const auto add = [&](std::string_view name, std::uint32_t field, std::uint64_t value) {
    w.text(of_node::kAttribute, attribute_text(name, field, value));
  };
  add("is_cpu_op", of_attribute::kBool, node.on_host ? 1 : 0);
  switch (node.kind) {
    case ChakraNode::Kind::compute:
      add("num_ops", of_attribute::kInt64, static_cast<std::uint64_t>(node.operations));
      add("tensor_size", of_attribute::kUint64, node.bytes);
      break;
    case ChakraNode::Kind::collective: {
      const auto same = [&](const CommType& t) { return t.kind == node.collective && t.barrier == node.barrier; };
      add("comm_type", of_attribute::kInt64, std::ranges::find_if(kCommTypes, same)->number);
      add("comm_size", of_attribute::kInt64, node.bytes);
      if (!node.group.empty()) {
        WireWriter group;
        group.text(of_attribute::kName, "pg_name");
        group.text(of_attribute::kString, node.group);
        w.text(of_node::kAttribute, group.bytes());
      }
      break;
    }
    case ChakraNode::Kind::send:
    case ChakraNode::Kind::receive:
      add("comm_size", of_attribute::kInt64, node.bytes);
      add(node.kind == ChakraNode::Kind::send ? "comm_dst" : "comm_src", of_attribute::kInt32,
          static_cast<std::uint64_t>(node.peer));
      add("comm_tag", of_attribute::kInt32, static_cast<std::uint64_t>(node.tag));
      break;
    case ChakraNode::Kind::other:
      break;
  }
}

std::string node_text(const ChakraNode& node) {
  WireWriter w;
  w.number(of_node::kId, node.id);
  w.text(of_node::kName, node.name);
  const auto* type = std::ranges::find(kNodeTypes, node.kind, &NodeType::kind);
  w.number(of_node::kType, type == std::end(kNodeTypes) ? kMetadataNode : type->number);
  for (const std::uint64_t id : node.waits_for) w.number(of_node::kData, id);
  if (node.start_us > 0) w.number(of_node::kStart, node.start_us);
  if (node.duration_us > 0) w.number(of_node::kDuration, node.duration_us);
  add_attributes(w, node);
  return w.bytes();
}

}  // namespace

ChakraTrace read_chakra(std::string_view bytes, const std::string& path) {
  WireReader reader(bytes, path);
  if (reader.done()) reader.fail("the file is empty");
  WireReader metadata = reader.inside(reader.delimited());
  while (!metadata.done()) metadata.field();
  ChakraTrace trace;
  std::set<std::uint64_t> ids;
  while (!reader.done()) {
    trace.nodes.push_back(read_node(reader.inside(reader.delimited())));
    const std::uint64_t id = trace.nodes.back().id;
    if (!ids.insert(id).second) reader.fail(fmt::format("node {} is there twice", id));
  }
  for (const ChakraNode& node : trace.nodes) {
    for (const std::uint64_t id : node.waits_for) {
      if (!ids.contains(id)) reader.fail(fmt::format("node {} waits for node {}, which is not there", node.id, id));
    }
  }
  return trace;
}

std::string chakra_text(const ChakraTrace& trace) {
  WireWriter metadata, stream;
  metadata.text(of_metadata::kVersion, "0.0.4");  // version of the schema, as MLCommons' generators write it
  stream.delimited(metadata.bytes());
  for (const ChakraNode& node : trace.nodes) stream.delimited(node_text(node));
  return stream.bytes();
}

}  // namespace orrery
