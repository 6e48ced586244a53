#pragma once

#include <cstdint>

namespace orrery {

// Where a buffer lies: in the memory of the GPU, in that of the host (cpu in specs), or on the host's disks.
enum class MemoryTier : std::uint8_t { device, host, nvme };

}  // namespace orrery
