#!/usr/bin/env python3
"""Profiler traces of training steps in plain PyTorch on one GPU, and the same steps' times without the profiler.

  pytorch_traces.py FOLDER [NAME...]   writes FOLDER/NAME.json.gz (two steps, with shapes) for each of: eager compile fsdp
                                       moe, and FOLDER/steps.json with their times, each at once

eager and compile are the model of pytorch_step.yaml; fsdp is the same with FSDP2's mixed precision on one rank, as
torchtitan shards it; moe has 8 experts a layer, 2 a token, as one grouped product.
"""
import gzip
import json
import os
import shutil
import statistics
import sys
import time

import pytorch_step as dense

import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

EXPERTS, CHOSEN, MOE_LAYERS, EXPERT_FEED_FORWARD = 8, 2, 8, 2816
WARM_UP, TIMED, TRACED = 3, 8, 2


class Experts(nn.Module):
    """Top-k experts by one grouped product a matrix, tokens sorted by expert."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(dense.HIDDEN, EXPERTS, bias=False)
        self.up = nn.Parameter(torch.empty(EXPERTS, dense.HIDDEN, 2 * EXPERT_FEED_FORWARD))
        self.down = nn.Parameter(torch.empty(EXPERTS, EXPERT_FEED_FORWARD, dense.HIDDEN))

    def forward(self, x):
        flat = x.reshape(-1, dense.HIDDEN)
        weights, chosen = self.router(flat).float().softmax(dim=-1).topk(CHOSEN, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        order = chosen.reshape(-1).argsort(stable=True)
        ends = torch.bincount(chosen.reshape(-1), minlength=EXPERTS).cumsum(0).to(torch.int32)
        source = order // CHOSEN
        grouped = getattr(F, "grouped_mm", None) or torch._grouped_mm
        gate, up = grouped(flat[source], self.up, offs=ends).chunk(2, dim=-1)
        y = grouped(F.silu(gate) * up, self.down, offs=ends) * weights.reshape(-1)[order].unsqueeze(-1).to(x.dtype)
        return torch.zeros_like(flat).index_add(0, source, y).view_as(x)


class MoeLayer(dense.Layer):
    def __init__(self):
        super().__init__()
        del self.up, self.down
        self.experts = Experts()

    def forward(self, x, cosine, sine):
        b, s, _ = x.shape
        q, k, v = self.qkv(self.attention_norm(x)).view(b, s, 3, dense.HEADS, dense.HEAD).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(dense.rotate(q, cosine, sine), dense.rotate(k, cosine, sine), v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, s, dense.HIDDEN))
        return x + self.experts(self.mlp_norm(x))


def initialised(model):
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:
                p.normal_(0, 0.02)
    return model


def with_masters(model, run):
    """A step of bf16 weights with fp32 masters in the optimizer."""
    masters = [p.detach().float().clone() for p in model.parameters()]
    optimizer = torch.optim.AdamW(masters, lr=1e-4, fused=True)
    return lambda batches: dense.step_of(run, masters, optimizer, batches)


def eager():
    model = initialised(dense.Decoder(False).to(device="cuda", dtype=torch.bfloat16))
    return with_masters(model, model)


def compile():
    model = initialised(dense.Decoder(False).to(device="cuda", dtype=torch.bfloat16))
    return with_masters(model, torch.compile(model))


def moe():
    model = dense.Decoder(False)
    model.layers = nn.ModuleList(MoeLayer() for _ in range(MOE_LAYERS))
    model = initialised(model.to(device="cuda", dtype=torch.bfloat16))
    return with_masters(model, model)


def fsdp():
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
    os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    dist.init_process_group("nccl")
    model = initialised(dense.Decoder(False).to(device="cuda"))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    mesh = init_device_mesh("cuda", (1,))
    for layer in model.layers:
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step(batches):
        for tokens, labels in batches:
            model(tokens, labels).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def timed(step, batches):
    times = []
    for i in range(WARM_UP + TIMED):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        step(batches)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return sorted(times[WARM_UP:])


def traced(step, batches, path):
    def export(profiler):
        profiler.export_chrome_trace(path)

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True,
                 schedule=schedule(wait=0, warmup=1, active=TRACED), on_trace_ready=export) as profiler:
        for _ in range(1 + TRACED):
            step(batches)
            torch.cuda.synchronize()
            profiler.step()
    with open(path, "rb") as plain, gzip.open(path + ".gz", "wb", compresslevel=9) as packed:
        shutil.copyfileobj(plain, packed)
    os.remove(path)


def record(name, folder):
    torch.manual_seed(0)
    torch.cuda.reset_peak_memory_stats()
    step, batches = globals()[name](), dense.batches_of(1)
    times = timed(step, batches)
    row = {"name": name, "step_s": statistics.median(times), "low_s": times[0], "high_s": times[-1],
           "max_memory_allocated": torch.cuda.max_memory_allocated(), "memory_reserved": torch.cuda.memory_reserved()}
    print(f"{name:10} step {row['step_s'] * 1e3:8.2f} ms", flush=True)
    traced(step, batches, os.path.join(folder, name + ".json"))
    return row


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    folder, names = sys.argv[1], sys.argv[2:] or ["eager", "fsdp", "moe", "compile"]
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "steps.json")
    about = {**dense.about(), "schema": "orrery.pytorch_traces/1", "steps": []}
    if os.path.exists(path):  # what other processes have recorded
        with open(path) as file:
            about["steps"] = [row for row in json.load(file)["steps"] if row["name"] not in names]
    for name in names:
        try:
            about["steps"].append(record(name, folder))
        except Exception as error:  # one that fails must not hide the others
            print(f"{name}: failed: {error}", file=sys.stderr, flush=True)
            about["steps"].append({"name": name, "error": str(error)})
        with open(path, "w") as file:
            json.dump(about, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()
