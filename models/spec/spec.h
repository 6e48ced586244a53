#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/spec/cluster.h"
#include "models/spec/model.h"
#include "models/spec/software.h"
#include "models/spec/strategy.h"

namespace orrery {

// The origin of a value, for `orrery explain`: {"strategy.tensor", "4", "spec.yaml:12"} or {..., "profile
// megatron-core"}, {..., "default"}, {..., "data = gpus / (tensor * pipeline * context)"}, {..., "--set"}.
struct Origin {
  std::string key;
  std::string value;
  std::string from;
  std::string asked = {};  // how the value was given, if the plan uses another: "zero3 over one rank"
};

// Limit of layers times micro-batches: a plan of about a gigabyte, as every layer of every micro-batch has ops of its
// own.
inline constexpr std::int64_t kMostLayerPasses = 1'000'000;

// The lengths of the documents that samples are packed from, end to end; each token attends within its document.
struct Documents {
  double mean = 0;       // tokens of a document, where lengths are exponential up to `max`
  std::int64_t max = 0;  // longest document; longer ones are cut
  std::string file;      // instead: a histogram, as written in the spec
  std::vector<std::pair<std::int64_t, double>> histogram;  // length and share of documents, of that file
};

// The training job: model, machines and strategy, complete and checked. It is the only input of make_plan().
struct Spec {
  std::string name;  // name of the spec's file without folder, for tables
  Model model;
  std::int64_t sequence = 0;
  std::optional<Documents> documents;
  Cluster cluster;
  std::int64_t gpus = 0;  // GPUs used, at most those of the cluster
  Software software;
  Strategy strategy;
  std::int64_t steps = 1;
  std::uint64_t seed = 0;
  std::vector<Origin> origins;  // origins of the values, in the order in which a spec is written
};

}  // namespace orrery
