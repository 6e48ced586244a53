#include "models/nccl.h"

namespace orrery {

Seconds nccl_corrected(const NcclModel&, CollectiveKind, const NcclChoice& choice, Bytes) {
  return choice.nccl_seconds;
}

}  // namespace orrery
