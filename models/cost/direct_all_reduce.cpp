#include "models/cost/direct_all_reduce.h"

#include <algorithm>

#include "models/cost/generation_figures.h"

namespace orrery {

NcclChoice with_direct_all_reduce(const NcclModel& model, Bytes bytes, const NcclChoice& nccl) {
  constexpr Bytes kMost = 8 << 20;
  const NcclTopology& t = model.topology;
  if (t.nodes > 1 || t.nvlink_GBps <= 0 || bytes > kMost || t.ranks < 2) return nccl;
  const GenerationFigures& f = generation_figures();
  const double ranks = t.ranks, rate = f.direct_part * nccl_local_GBps(t) * 1e9, size = static_cast<double>(bytes);
  const double start = f.direct_start_us * kMicrosecond;
  const double one = (ranks - 1) * size / rate, two = start / 2 + 2 * (ranks - 1) / ranks * size / rate;
  const Seconds time = start + std::min(one, two);
  if (time >= nccl.seconds) return nccl;
  NcclChoice direct = lasting(nccl, time);
  direct.algorithm = NcclAlgorithm::direct;
  direct.protocol = NcclProtocol::simple;
  direct.nccl_seconds = time;
  return direct;
}

}  // namespace orrery
