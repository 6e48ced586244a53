// One reader as a libFuzzer target: ORRERY_READER names its function. clang, -DORRERY_FUZZ=ON; scripts/fuzz runs it.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  orrery::fuzz::take({reinterpret_cast<const char*>(data), size}, orrery::fuzz::ORRERY_READER);
  return 0;
}
