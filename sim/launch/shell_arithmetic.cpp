#include <cctype>
#include <charconv>
#include <limits>

#include "sim/launch/shell_values.h"

namespace orrery {
namespace {

using WholeResult = std::optional<long long>;
constexpr int kDeepestSum = 64;

struct SumOperator {
  std::string_view sign;
  int rank;  // precedence: operators with a higher number bind tighter
};
constexpr SumOperator kSumOperators[] = {{"**", 3}, {"+", 1}, {"-", 1}, {"*", 2}, {"/", 2}, {"%", 2}};

WholeResult whole_power(long long base, long long exponent) {
  long long result = 1;
  if (exponent < 0 || exponent > 64) return {};
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(result, base, &result)) return {};
  }
  return result;
}

WholeResult apply_sign(std::string_view sign, WholeResult a, WholeResult b) {
  if (!a || !b) return {};
  long long result = 0;
  if (sign == "**") return whole_power(*a, *b);
  if (sign == "+") return __builtin_add_overflow(*a, *b, &result) ? WholeResult() : result;
  if (sign == "-") return __builtin_sub_overflow(*a, *b, &result) ? WholeResult() : result;
  if (sign == "*") return __builtin_mul_overflow(*a, *b, &result) ? WholeResult() : result;
  if (*b == 0 || (*a == std::numeric_limits<long long>::min() && *b == -1)) return {};
  return sign == "/" ? *a / *b : *a % *b;
}

// Evaluates an arithmetic expression of the shell by the precedence (rank) of operators.
class SumReader {
 public:
  SumReader(std::string_view text, const ShellValues& values) : text_(text), values_(values) {}

  WholeResult all() {
    const WholeResult value = sum(1, 0);
    skip();
    return at_ == text_.size() ? value : WholeResult();
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::string_view(" \t\n$\"{}").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  const SumOperator* next_operator() {
    skip();
    for (const SumOperator& o : kSumOperators) {
      if (text_.substr(at_).starts_with(o.sign)) return &o;
    }
    return nullptr;
  }
  WholeResult sum(int least, int depth) {
    WholeResult left = term(depth);
    while (const SumOperator* o = next_operator()) {
      if (o->rank < least) break;
      at_ += o->sign.size();
      left = apply_sign(o->sign, left, sum(o->rank + 1, depth));
    }
    return left;
  }
  WholeResult term(int depth) {
    skip();
    if (depth > kDeepestSum || at_ >= text_.size()) return {};
    const char c = text_[at_];
    if (c == '-') {
      ++at_;
      return apply_sign("-", 0, term(depth + 1));
    }
    if (c == '(') {
      ++at_;
      const WholeResult value = sum(1, depth + 1);
      skip();
      if (at_ >= text_.size() || text_[at_++] != ')') return {};
      return value;
    }
    return word();
  }
  WholeResult word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    std::string spelled(text_.substr(begin, at_ - begin));
    if (const auto* items = values_.find(spelled); items != nullptr && !items->empty()) spelled = items->front().text;
    long long value = 0;
    const auto [end, error] = std::from_chars(spelled.data(), spelled.data() + spelled.size(), value);
    return error == std::errc() && end == spelled.data() + spelled.size() ? WholeResult(value) : WholeResult();
  }

  std::string_view text_;
  const ShellValues& values_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<long long> shell_arithmetic(std::string_view expression, const ShellValues& values) {
  return SumReader(expression, values).all();
}

}  // namespace orrery
