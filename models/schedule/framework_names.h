#pragma once

#include "models/base/option_word.h"

namespace orrery {

// The names of schedules in torch.distributed.pipelining, which torchtitan's configuration files use
// (get_schedule_class of torch/distributed/pipelining/schedules.py, which ignores case), each with Orrery's name. If a
// schedule has several spellings here, Orrery writes the first and reads all.
inline constexpr OptionWord kTorchSchedules[] = {{"1F1B", "1f1b"},
                                                 {"1f1b", "1f1b"},
                                                 {"GPipe", "gpipe"},
                                                 {"gpipe", "gpipe"},
                                                 {"Interleaved1F1B", "interleaved"},
                                                 {"interleaved1f1b", "interleaved"},
                                                 {"interleaved_1f1b", "interleaved"},
                                                 {"ZBVZeroBubble", "zb-v"},
                                                 {"DualPipeV", "dualpipev"}};

// The values of nanotron's parallelism.pp_engine (nanotron/parallel/pipeline_parallel/engine.py), each with Orrery's
// name. afab: all forwards, then all backwards; 1f1b: one forward and one backward in turn.
inline constexpr OptionWord kNanotronSchedules[] = {{"1f1b", "1f1b"}, {"afab", "gpipe"}};

}  // namespace orrery
