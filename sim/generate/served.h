#pragma once

#include <string>
#include <vector>

#include "sim/print/section.h"
#include "sim/print/text.h"

namespace orrery {

// One published measurement of an inference stack: the model, the machine and the load, and the measured figure.
// `metric` says what `value` is: the time per output token, the time to the first token, or tokens per second.
struct ServedRow {
  // gemm_precision, cache_precision: precision of the matrix products and of the key-value cache
  std::string id, source, mode, framework, model, gpu, precision, gemm_precision, cache_precision;
  std::int64_t gpus = 1, tensor = 1, pipeline = 1, attention_data = 1, expert = 0;
  std::int64_t input = 0, output = 0, batch = 0, concurrency = 0, requests = 0;
  std::string metric;
  std::vector<double> value;
};

// The prediction for a row, in the units of the row. refused: the reason if nothing could be predicted.
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

// Reads a list of rows (docs/guide.md says which keys). Throws Error naming file and row.
std::vector<ServedRow> read_served(const std::string& path);
// Predicts a row: a static batch; a prompt or a token alone; as many sequences as fit (offline); or a fixed number of
// requests under way, each of whose tokens also waits for its share of the others' prompts.
ServedCase predict_served(const ServedRow& row);

// The table of errors by figure, stack and GPU, with the reasons for rows that were not predicted and how often each
// occurs, as sections and as text; and the same as JSON, which also has every row.
std::vector<Section> served_sections(const std::vector<ServedCase>& cases);
std::string served_text(const std::vector<ServedCase>& cases, const Style& style);
std::string served_json(const std::vector<ServedCase>& cases);

}  // namespace orrery
