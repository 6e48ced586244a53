#include "models/base/precision.h"

#include "models/base/names.h"

namespace orrery {
namespace {

constexpr Named<Precision> kPrecisions[] = {
    {"fp32", Precision::fp32},   {"tf32", Precision::tf32}, {"fp16", Precision::fp16},
    {"bf16", Precision::bf16},   {"fp8", Precision::fp8},   {"mxfp8", Precision::mxfp8},
    {"nvfp4", Precision::nvfp4}, {"int8", Precision::int8}, {"int4", Precision::int4}};
constexpr std::size_t kTraining = 7;  // the first so many are precisions of training

}  // namespace

// The error names the precisions of training.
Precision find_precision(std::string_view name) {
  for (const Named<Precision>& row : kPrecisions) {
    if (row.name == name) return row.value;
  }
  throw Error(unknown_name("precision", name, precision_names()));
}
std::string_view name_of(Precision p) { return name_in(kPrecisions, p); }
std::vector<std::string_view> precision_names() {
  std::vector<std::string_view> names = names_of(kPrecisions);
  names.resize(kTraining);
  return names;
}

bool is_eight_bit(Precision p) { return p >= Precision::fp8; }

Bytes storage_bytes(Precision p) { return p == Precision::fp32 || p == Precision::tf32 ? 4 : 2; }

}  // namespace orrery
