#include "sim/generate/pass_times.h"

#include <algorithm>
#include <vector>

#include "models/base/units.h"

namespace orrery {
namespace {

constexpr std::int64_t kShortContext = 16;  // at which attention takes next to nothing of a pass

// A line through two points.
struct Line {
  double at_zero = 0, slope = 0;
  static Line through(double x0, double y0, double x1, double y1) {
    const double slope = x1 > x0 ? (y1 - y0) / (x1 - x0) : 0;
    return {y0 - slope * x0, slope};
  }
  double at(double x) const { return at_zero + slope * x; }
};

// Passes of answers of a number of sequences: their seconds by the length of the context, and with hardly any context.
struct Answers {
  double sequences = 0, without = 0;
  Line by_context;
};

class PassTable {
 public:
  PassTable(const PredictPass& predict, const ServingLoad& load) {
    const double a_request = load.state_bytes + static_cast<double>(load.input + 1) * load.token_bytes;
    const double fit = std::clamp(load.cache_bytes / a_request, 1.0, static_cast<double>(kMostSequences));
    const std::int64_t most =
        std::min({ceil_div(load.clients, load.data_ranks), load.sequences, static_cast<std::int64_t>(fit)});
    for (const std::int64_t part : {most, most / 4, std::int64_t{1}}) {
      const std::int64_t n = std::max<std::int64_t>(1, part);
      if (rows_.empty() || static_cast<double>(n) < rows_.front().sequences)
        rows_.insert(rows_.begin(), row(predict, load, n));
    }
  }

  double decode(double sequences, double context) const {
    return between(sequences, [&](const Answers& a) { return a.by_context.at(context); });
  }
  double attention(double sequences, double context) const {
    const double without = between(sequences, [](const Answers& a) { return a.without; });
    return std::max(0.0, decode(sequences, context) - without);
  }

 private:
  static Answers row(const PredictPass& predict, const ServingLoad& load, std::int64_t n) {
    const std::int64_t last = load.input + std::max<std::int64_t>(1, load.output - 1);
    return {static_cast<double>(n), predict.decode(n, kShortContext),
            Line::through(static_cast<double>(load.input), predict.decode(n, load.input), static_cast<double>(last),
                          predict.decode(n, last))};
  }

  // Interpolates what f says of the rows with fewer and with more sequences.
  template <class F>
  double between(double sequences, const F& f) const {
    auto above = rows_.begin();
    while (above + 1 != rows_.end() && above->sequences < sequences) ++above;
    const auto below = above == rows_.begin() ? above : above - 1;
    return Line::through(below->sequences, f(*below), above->sequences, f(*above)).at(sequences);
  }

  std::vector<Answers> rows_;  // by sequences
};

}  // namespace

PassTimes pass_times(const PredictPass& predict, const ServingLoad& load) {
  const PassTable table(predict, load);
  const std::int64_t several = std::clamp<std::int64_t>(
      load.pass_tokens / load.input, 2, std::max<std::int64_t>(2, ceil_div(load.clients, load.data_ranks)));
  const auto tokens = static_cast<double>(load.input);
  const PromptTime one = predict.prompts(1, load.input), all = predict.prompts(several, load.input);
  const double least = std::min(one.device_s, table.decode(1, tokens)), many = static_cast<double>(several) * tokens;
  const Line part = Line::through(0, least, tokens, one.device_s);
  const Line whole = Line::through(tokens, one.device_s, many, all.device_s);
  const Line experts = Line::through(tokens, one.experts_s, many, all.experts_s);
  const Line launch = Line::through(tokens, one.launch_s, many, all.launch_s);
  return {.decode = [table](double n, double context) { return table.decode(n, context); },
          .attention = [table](double n, double context) { return table.attention(n, context); },
          .prompt = [=](double n) { return n < tokens ? part.at(n) : whole.at(n); },
          .experts = [=](double n) { return n < tokens ? experts.at(tokens) * n / tokens : experts.at(n); },
          .launch = [=](double n) { return launch.at(std::max(n, tokens)); }};
}

}  // namespace orrery
