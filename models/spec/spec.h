#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/spec/cluster.h"
#include "models/spec/generation.h"
#include "models/spec/model.h"
#include "models/spec/second_model.h"
#include "models/spec/software.h"
#include "models/spec/strategy.h"

namespace orrery {

// A setting and where its value came from, for `orrery explain`: {"strategy.tensor", "4", "spec.yaml:12"} or {...,
// "profile megatron-core"}, {..., "default"}, {..., "data = gpus / (tensor * pipeline * context)"}, {..., "--set"}.
struct Origin {
  std::string key;
  std::string value;
  std::string from;
  std::string asked = {};  // the value that the user gave, if the plan uses another one: "zero3 over one rank"
};

// The largest product of layers and micro-batches that a spec may have. Every layer has tasks of its own for every
// micro-batch, so that a plan of this size takes about a gigabyte.
inline constexpr std::int64_t kMostLayerPasses = 1'000'000;

// The lengths of the documents that samples are packed from, end to end; each token attends within its document.
struct Documents {
  double mean = 0;       // mean document length in tokens; lengths are exponentially distributed up to `max`
  std::int64_t max = 0;  // tokens of the longest document; longer ones are cut
  // used instead of `mean`: name of the file with a histogram of document lengths, as written in the spec
  std::string file;
  // pairs of a document length (tokens) and its share, from `file`
  std::vector<std::pair<std::int64_t, double>> histogram;
};

// The images of a sample, which a vision encoder (VisionEncoder) turns into tokens of the sample.
struct Images {
  std::int64_t count = 1;       // number of images of a sample
  std::int64_t patches = 1024;  // number of patches of an image
};

// The job, training or generation of text: model, machines and strategy, complete and checked. It is the only input of
// make_plan().
struct Spec {
  std::string name;  // name of the spec's file without its folder, for tables
  Model model;
  std::int64_t sequence = 0;
  std::optional<Documents> documents;
  std::optional<Images> images;          // set if samples have images; the model has a vision encoder then
  std::optional<Generation> generation;  // set if the job generates text; else the job trains
  // set if a frozen model runs beside the one that trains (workload: distill, workload: dpo)
  std::optional<SecondModel> second;
  Cluster cluster;
  std::int64_t gpus = 0;  // number of GPUs used, at most the number of GPUs of the cluster
  Software software;
  Strategy strategy;
  std::int64_t steps = 1;
  std::uint64_t seed = 0;
  std::vector<Origin> origins;  // for each value of the spec, its origin, in the order in which a spec is written
};

}  // namespace orrery
