#include "models/base/precision.h"

#include "models/base/names.h"

namespace orrery {
namespace {

constexpr Named<Precision> kPrecisions[] = {
    {"fp32", Precision::fp32}, {"tf32", Precision::tf32},   {"fp16", Precision::fp16},  {"bf16", Precision::bf16},
    {"fp8", Precision::fp8},   {"mxfp8", Precision::mxfp8}, {"nvfp4", Precision::nvfp4}};

}  // namespace

Precision find_precision(std::string_view name) { return find_named(kPrecisions, "precision", name); }
std::string_view name_of(Precision p) { return name_in(kPrecisions, p); }
std::vector<std::string_view> precision_names() { return names_of(kPrecisions); }

bool is_eight_bit(Precision p) { return p == Precision::fp8 || p == Precision::mxfp8 || p == Precision::nvfp4; }

Bytes storage_bytes(Precision p) { return p == Precision::fp32 || p == Precision::tf32 ? 4 : 2; }

}  // namespace orrery
