// This file reads the spec's section `sequence`: the tokens of a sample, the documents that samples are packed
// from, and their images.
#include <nlohmann/json.hpp>

#include "models/base/input_file.h"
#include "models/base/json_value.h"
#include "models/load/reader.h"

namespace orrery {
namespace {

constexpr SpecKey kSequenceKeys[] = {
    {"length", "tokens of a sample", "8192", "", "required"},
    {"documents", "documents that a sample is packed from, each attended to alone; a map, or a file of [length, share]",
     "{mean: 1200, max: 8192}", "map | path", "one that fills the sample"},
    {"images", "images among the tokens, which the model's vision encoder reads", "{count: 2, patches: 4096}", "",
     "none"},
};
constexpr SpecKey kDocumentKeys[] = {
    {"mean", "tokens of a document, exponential up to max", "1200", "", "required"},
    {"max", "longest document", "8192", "", "the sample"},
};

std::vector<std::pair<std::int64_t, double>> read_histogram(const std::string& path) {
  constexpr std::string_view kAdvice = "a list of [length, share] is needed";
  const nlohmann::json root = parse_json(path, read_input(path, kMostTables), kAdvice);
  std::vector<std::pair<std::int64_t, double>> histogram;
  for (const JsonValue& row : JsonValue(root, path, std::string(kAdvice)).items()) {
    const std::vector<double> pair = row.numbers(0, 1e9);
    if (pair.size() != 2 || pair[0] < 1 || pair[1] <= 0)
      throw Error(fmt::format("{}: {}, each of at least 1 token and above 0", path, kAdvice));
    histogram.emplace_back(static_cast<std::int64_t>(pair[0]), pair[1]);
  }
  if (histogram.empty()) throw Error(fmt::format("{}: {}; it is empty", path, kAdvice));
  return histogram;
}

void read_documents(const SpecSection& section, Spec& spec) {
  const SpecNode* node = section.find("documents");
  if (node == nullptr) return;
  Documents& d = spec.documents.emplace();
  d.max = spec.sequence;
  if (node->kind == SpecNode::Kind::scalar) {
    convert(section.reader(), *node, section.name("documents"), d.file);
    d.file = beside(section.reader().path, d.file);
    section.record("documents", d.file, node, "");
    d.histogram = read_histogram(d.file);
    return;
  }
  const SpecSection map(section.reader(), node, "sequence.documents", kDocumentKeys);
  map.take("mean", d.mean, "required");
  map.take("max", d.max, "length");
}

}  // namespace

void read_sequence(SpecReader& reader, const SpecNode* node, Spec& spec) {
  const SpecSection section(reader, node, "sequence", kSequenceKeys);
  if (!section.take("length", spec.sequence, "required")) reader.fail(*node, "sequence.length", "missing");
  read_documents(section, spec);
  read_images(section, spec);
}

Broken document_rules(const Spec& spec) {
  if (!spec.documents || !spec.documents->histogram.empty()) return {};
  const Documents& d = *spec.documents;
  if (!(d.mean >= 1) || d.mean > 1e9)
    return broken("sequence.documents.mean", "sequence.documents.mean: {} is not between 1 and 1e9", d.mean);
  if (d.max < 1 || d.max > spec.sequence)
    return broken("sequence.documents.max", "sequence.documents.max: {} is not between 1 and the sample's {} tokens",
                  d.max, spec.sequence);
  return {};
}

}  // namespace orrery
