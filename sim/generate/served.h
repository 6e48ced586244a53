#pragma once

#include <string>
#include <vector>

#include "sim/print/section.h"
#include "sim/print/text.h"

namespace orrery {

// One published measurement of an inference stack: the model, the machine and the load, and the measured figure.
// metric: the quantity that `value` is, such as the time per output token, the time to the first token, or tokens per
// second.
struct ServedRow {
  // gemm_precision, cache_precision: precision of the matrix products and of the key-value cache
  std::string id, source, mode, framework, model, gpu, precision, gemm_precision, cache_precision;
  std::int64_t gpus = 1, tensor = 1, pipeline = 1, attention_data = 1, expert = 0;
  std::int64_t input = 0, output = 0, batch = 0, concurrency = 0, requests = 0;
  std::string metric;
  std::vector<double> value;
  // of requests that come at a rate (requests a second): the mean time to the first token and between tokens, ms; 0:
  // not measured
  double rate = 0, first_token_ms = 0, token_ms = 0;
};

// The prediction for one published measurement of inference, in the measurement's units. refused: the reason if nothing
// could be predicted.
struct ServedCase {
  const ServedRow* row = nullptr;
  struct Figure {
    std::string_view name;
    double predicted = 0, measured = 0;
    double ratio() const { return predicted / measured; }
  };
  std::vector<Figure> figures;
  std::string refused;
};

// Reads a list of published measurements of inference (docs/guide.md says which keys). Throws Error that names file and
// row.
std::vector<ServedRow> read_served(const std::string& path);
// Predicts the figures of one published measurement. The measured load is one of four: a batch whose sequences begin
// and end together; requests that all wait from the begin on (offline); requests that come at a rate; or clients that
// each have one request in progress (fixed concurrency). The last three are played pass by pass (serving_load.h).
ServedCase predict_served(const ServedRow& row);

// The errors of predictions, in tables by figure, inference stack and GPU, and how often each reason for not predicting
// occurs: as sections, and as text. The JSON has the prediction of every row instead.
std::vector<Section> served_sections(const std::vector<ServedCase>& cases);
std::string served_text(const std::vector<ServedCase>& cases, const Style& style);
std::string served_json(const std::vector<ServedCase>& cases);

}  // namespace orrery
