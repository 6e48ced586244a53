#pragma once

#include <cstdint>

namespace orrery {

// The memory that a buffer lies in: that of the GPU, the host (cpu in specs), or the disks of the host.
enum class MemoryTier : std::uint8_t { device, host, nvme };

}  // namespace orrery
