#pragma once

#include "tests/exec/agreement.h"

namespace orrery::test {

// Strategies that GPU ranks execute, on small models.
inline const Case kStrategies[] = {
    {kLlama, "data: 1, global_batch: 2"},
    {kLlama, "data: 1, global_batch: 2, recompute: full"},
    {kGpt, "data: 1, global_batch: 2, attention: unfused"},
    {kGpt, "data: 1, global_batch: 4, micro_batch: 2"},
    {kQwen, "data: 1, global_batch: 2"},
    {kLlama, "data: 2, global_batch: 4"},
    {kLlama, "data: 2, sharding: zero1, global_batch: 4"},
    {kGpt, "data: 2, sharding: zero2, global_batch: 4"},
    {kLlama, "data: 2, sharding: zero3, global_batch: 4"},
    {kLlama, "data: 3, sharding: fsdp, global_batch: 6"},
    {kLlama, "data: 4, sharding: hsdp, shard_group: 2, global_batch: 8"},
    {kGpt, "tensor: 2, data: 1, global_batch: 2"},
    {kQwen, "tensor: 4, data: 1, sequence_parallel: false, attention: unfused, global_batch: 2"},
    {kLlama, "pipeline: 4, data: 1, global_batch: 4"},
    {kLlama, "pipeline: 2, virtual_stages: 2, data: 1, global_batch: 4"},
    {kGpt, "tensor: 2, pipeline: 2, data: 2, sharding: zero1, recompute: full, global_batch: 8"},
    {kLlama,
     "data: 2, sharding: zero2, global_batch: 4, offload: {optimizer: {device: cpu, tile: 9001}, gradients: cpu}"},
    {kGpt, "data: 2, sharding: zero1, global_batch: 4, offload: {optimizer: cpu, activations: cpu}"},
    {kLlama, "data: 2, sharding: fsdp, global_batch: 4, offload: {optimizer: cpu, gradients: cpu, parameters: cpu}"},
    {kLlama,
     "data: 2, sharding: zero3, global_batch: 4, prefetch_units: 2, units_in_flight: 4, offload: {optimizer: {device: "
     "nvme, tile: 9001}, gradients: nvme, parameters: nvme}"},
    {kGpt,
     "data: 2, sharding: zero3, global_batch: 4, recompute: full, offload: {optimizer: cpu, gradients: cpu, "
     "parameters: cpu, tiling: 2}"},
    {kGpt, "tensor: 2, pipeline: 2, data: 1, global_batch: 4, offload: {optimizer: cpu, gradients: cpu}"},
    {kGpt,
     "tensor: 2, data: 1, sequence_parallel: false, global_batch: 2, recompute: full, partition_activations: true, "
     "offload: {activations: cpu}"},
    {kLlama, "data: 2, global_batch: 4, fused_buffers: true, bucket_MiB: 0.05"},
    {kLlama, "pipeline: 4, data: 1, schedule: vocab-1f1b, global_batch: 8"},
    {kGpt, "pipeline: 2, data: 2, schedule: vocab-1f1b-alg1, sharding: zero1, global_batch: 8"},
    {kLlama, "pipeline: 2, data: 1, stage_replicas: [2, 1], schedule: dapple, micro_batch: 2, global_batch: 8"},
    {kLlama,
     "pipeline: 2, data: 1, stage_replicas: [1, 3], schedule: dapple, sharding: zero1, micro_batch: 3, global_batch: "
     "12"},
    {kLlama, "context: 2, context_kind: ulysses, data: 2, sharding: zero1, global_batch: 4"},
    {kGpt, "context: 2, context_kind: ulysses, tensor: 2, data: 1, global_batch: 2"},
};

}  // namespace orrery::test
