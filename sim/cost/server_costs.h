#pragma once

#include "models/cost/nccl/model.h"
#include "models/cost/profile.h"
#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// Returns the time of a push to a plan's parameter servers, or of a pull from them: every server exchanges a message
// with every worker. Messages that leave a machine share the machine's NICs, and the busiest NIC sets the time. A
// server uses one NIC of its machine, which is one of the workers' NICs if the machine has workers too. With S servers
// that each have a NIC of B bytes per second, and W workers whose gradients take Psi bytes, a push takes Psi W / (S B),
// as long as the workers' own NICs are not full. If all workers are on one machine, the messages go over each GPU's
// link to the host, and in and out of the host's memory. If servers update in order of arrival (asynchronous workers),
// the time is that of one worker's transfer alone. A push to chains of R servers (replicas of one shard) ends when the
// sums have gone R - 1 servers further, all chains at once: such a push brings (W + R - 1) Psi / S bytes to the machine
// of every server.
NcclChoice served(const Collective& c, const Plan& plan, const Spec& spec, const Profile& profile);

}  // namespace orrery
