#pragma once

#include "models/base/option_word.h"

namespace orrery {

// The names of torch.distributed.pipelining, which torchtitan's files take (get_schedule_class of
// torch/distributed/pipelining/schedules.py; the call compares without case). The first spelling is the one written.
inline constexpr OptionWord kTorchSchedules[] = {{"1F1B", "1f1b"},
                                                 {"1f1b", "1f1b"},
                                                 {"GPipe", "gpipe"},
                                                 {"gpipe", "gpipe"},
                                                 {"Interleaved1F1B", "interleaved"},
                                                 {"interleaved1f1b", "interleaved"},
                                                 {"interleaved_1f1b", "interleaved"},
                                                 {"ZBVZeroBubble", "zb-v"},
                                                 {"DualPipeV", "dualpipev"}};

// The names of nanotron's parallelism.pp_engine (nanotron/parallel/pipeline_parallel/engine.py): all forwards then all
// backwards, and one of each in turn.
inline constexpr OptionWord kNanotronSchedules[] = {{"1f1b", "1f1b"}, {"afab", "gpipe"}};

}  // namespace orrery
