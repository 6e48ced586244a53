#include "sim/summary/kernel_name.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <vector>

namespace orrery {
namespace {

constexpr std::size_t kLongestShortName = 90;

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

template <std::size_t size>
bool is_word_of(std::string_view word, const std::array<std::string_view, size>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Words of template arguments that say nothing of what a kernel does: types, wrappers, lists of tensors.
bool says_nothing(std::string_view word) {
  static constexpr std::array<std::string_view, 36> kWords = {"at",
                                                              "native",
                                                              "c10",
                                                              "cuda",
                                                              "std",
                                                              "anonymous",
                                                              "namespace",
                                                              "float",
                                                              "double",
                                                              "int",
                                                              "long",
                                                              "unsigned",
                                                              "char",
                                                              "short",
                                                              "bool",
                                                              "void",
                                                              "true",
                                                              "false",
                                                              "const",
                                                              "Half",
                                                              "BFloat16",
                                                              "detail",
                                                              "func_wrapper_t",
                                                              "ReduceOp",
                                                              "templates",
                                                              "gpu_kernel_impl",
                                                              "gpu_kernel_impl_nocast",
                                                              "array",
                                                              "Array",
                                                              "signed",
                                                              "__half",
                                                              "__nv_bfloat16",
                                                              "cutlass",
                                                              "gemm",
                                                              "kernel",
                                                              "tuple"};
  if (word.empty() || std::isdigit(static_cast<unsigned char>(word[0])) != 0) return true;
  if (word.starts_with("TensorListMetadata") || word.starts_with("TensorListScalar")) return true;
  if (word.starts_with("FusedOptimizerTensorList")) return true;
  return is_word_of(word, kWords);
}

// Whether a kernel is a mere wrapper of the function that its first informative template argument names.
bool wraps(std::string_view base) {
  static constexpr std::array<std::string_view, 4> kWrappers = {"Kernel", "Kernel2", "device_kernel", "kernel"};
  return is_word_of(base, kWrappers);
}
bool applies_functor(std::string_view base) {
  return base.find("elementwise") != std::string_view::npos || base.find("reduce_kernel") != std::string_view::npos ||
         base.find("multi_tensor_apply") != std::string_view::npos || base.find("_for_each") != std::string_view::npos;
}

// The first word of template arguments that says what a kernel does, with the namespace just before it for a wrapper.
std::string telling_word(std::string_view arguments, bool with_namespace) {
  std::string_view before;
  for (std::size_t i = 0; i < arguments.size();) {
    if (!in_word(arguments[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < arguments.size() && in_word(arguments[end])) ++end;
    const std::string_view word = arguments.substr(i, end - i);
    const bool is_namespace = arguments.substr(end, 2) == "::" && arguments.substr(end, 3) != "::{";
    if (is_namespace) {
      before = says_nothing(word) ? std::string_view() : word;
    } else if (!says_nothing(word)) {
      return with_namespace && !before.empty() ? std::string(before) + "::" + std::string(word) : std::string(word);
    } else {
      before = {};
    }
    i = end;
  }
  return "";
}

// The outermost parts of a kernel's name: the qualified name, and the text of its first template arguments.
struct NameParts {
  std::string qualified;
  std::string_view arguments;
};

// Splits a kernel's name. "(anonymous namespace)" is left out, and so is all that follows the first parameter list.
NameParts split_kernel_name(std::string_view name) {
  static constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  NameParts parts;
  int depth = 0;
  std::size_t from = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (depth == 0 && name.substr(i).starts_with(kAnonymous)) {
      i += kAnonymous.size() - 1;
      continue;
    }
    const char c = name[i];
    if (c == '<' && depth++ == 0) from = i + 1;
    if (depth == 0 && c == '(') break;
    if (depth == 0) parts.qualified += c;
    if (c == '>' && depth > 0 && (i == 0 || name[i - 1] != '-') && --depth == 0 && parts.arguments.empty())
      parts.arguments = name.substr(from, i - from);
  }
  return parts;
}

// The last part of a qualified name, with the namespace before it unless that namespace says nothing about the kernel.
std::string last_parts(std::string_view qualified) {
  const std::size_t last = qualified.rfind("::");
  if (last == std::string_view::npos) return std::string(qualified);
  const std::string_view base = qualified.substr(last + 2);
  const std::size_t before = qualified.substr(0, last).rfind("::");
  const std::size_t from = before == std::string_view::npos ? 0 : before + 2;
  return says_nothing(qualified.substr(from, last - from)) ? std::string(base) : std::string(qualified.substr(from));
}

}  // namespace

std::string demangled(std::string_view name) {
  if (!name.starts_with("_Z")) return std::string(name);
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : std::string(name);
}

std::string short_kernel_name(std::string_view name) {
  if (name.starts_with("Mem")) return std::string(name);  // copies by a copy engine: "Memcpy HtoD (Pinned -> Device)"
  if (name.starts_with("void ")) name.remove_prefix(5);
  const NameParts parts = split_kernel_name(name);
  std::string result = last_parts(parts.qualified);
  const std::string_view base = std::string_view(result).substr(result.rfind(':') + 1);
  if (wraps(base)) {
    const std::string inner = telling_word(parts.arguments, true);
    if (!inner.empty()) result = inner;
  } else if (applies_functor(base)) {
    const std::string functor = telling_word(parts.arguments, false);
    if (!functor.empty()) result += ' ' + functor;
  }
  if (result.empty()) result = std::string(name);
  if (result.size() > kLongestShortName) result = result.substr(0, kLongestShortName - 3) + "...";
  return result;
}

}  // namespace orrery
