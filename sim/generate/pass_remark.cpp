#include "sim/generate/pass_remark.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/generate/served_options.h"
#include "sim/print/text.h"

namespace orrery {

std::string pass_remark(const Spec& spec) {
  const std::int64_t most = pass_tokens_of(spec.software.name), rows = spec.strategy.micro_batch;
  const Generation& g = *spec.generation;
  const std::int64_t tokens = g.chunk > 0 ? std::min(g.chunk, g.input) : g.input;
  if (most == 0 || rows * tokens <= most) return "";
  const std::string begin = fmt::format(
      "generate.chunk: a pass computes {} tokens of {} prompts, {} at most {} by default",
      grouped(static_cast<double>(rows * tokens)), rows, spec.software.name, grouped(static_cast<double>(most)));
  if (rows > most) return begin + ", fewer than the prompts: set a smaller batch";
  return fmt::format("{}: generate.chunk={} keeps to it, with less working memory and a larger batch", begin,
                     most / rows);
}

}  // namespace orrery
