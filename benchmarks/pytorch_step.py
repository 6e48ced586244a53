#!/usr/bin/env python3
"""A training step of a Llama-like decoder in plain PyTorch on one GPU, to hold predictions and our executor against.

Eager, weights and activations in bf16, fp32 master weights in the optimizer (fused AdamW), attention by the backend
that PyTorch takes by itself and by FLASH_ATTENTION (FlashAttention-2); plain, with checkpointing of every layer, with
accumulation. Beside it, not judged: cuDNN attention and torch.compile. Then attention alone: causal, bf16, heads of 128,
sequence 8192, 16384 tokens. The tokens are those that our executor trains on, so that sums by token meet as often.
Prints one line for each, and with --out writes them as JSON. The model is that of benchmarks/pytorch_step.yaml.
"""
import argparse
import contextlib
import gc
import json
import statistics
import sys
import time

from our_tokens import sample
from pytorch_results import DEFAULT, PINNED, Results

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

LAYERS, HIDDEN, HEADS, FEED_FORWARD, VOCAB = 16, 2048, 16, 5632, 32000
SEQUENCE, BATCH = 4096, 2
HEAD = HIDDEN // HEADS


class RmsNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x):
        return F.rms_norm(x, (HIDDEN,), self.weight, 1e-5)


def rotate(x, cosine, sine):  # (batch, heads, sequence, head)
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cosine - b * sine, b * cosine + a * sine), dim=-1)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.mlp_norm = RmsNorm(), RmsNorm()
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN, bias=False)
        self.out = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.up = nn.Linear(HIDDEN, 2 * FEED_FORWARD, bias=False)
        self.down = nn.Linear(FEED_FORWARD, HIDDEN, bias=False)

    def forward(self, x, cosine, sine):
        b, s, _ = x.shape
        q, k, v = self.qkv(self.attention_norm(x)).view(b, s, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(rotate(q, cosine, sine), rotate(k, cosine, sine), v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, s, HIDDEN))
        gate, up = self.up(self.mlp_norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Decoder(nn.Module):
    def __init__(self, checkpointed):
        super().__init__()
        self.checkpointed = checkpointed
        self.embedding = nn.Embedding(VOCAB, HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = RmsNorm()
        self.head = nn.Linear(HIDDEN, VOCAB, bias=False)
        angles = torch.outer(torch.arange(SEQUENCE), 10000.0 ** (-torch.arange(0, HEAD, 2) / HEAD))
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())

    def forward(self, tokens, labels):
        x = self.embedding(tokens)
        for layer in self.layers:
            if self.checkpointed:
                x = checkpoint(layer, x, self.cosine, self.sine, use_reentrant=False)
            else:
                x = layer(x, self.cosine, self.sine)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.float().view(-1, VOCAB), labels.view(-1))


def batches_of(count):
    """Micro-batches of tokens and labels, the same that our executor takes."""
    def batch(number):
        tokens = torch.tensor([sample(number * BATCH + i, SEQUENCE, VOCAB) for i in range(BATCH)], device="cuda")
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    return [batch(number) for number in range(count)]


def attention_by(backend):
    """PyTorch's own choice where no backend is named."""
    return contextlib.nullcontext() if backend is None else sdpa_kernel(backend)


def default_backend():
    """The name of the backend that PyTorch takes by itself for this model; "" where it does not tell."""
    q = torch.empty(BATCH, HEADS, SEQUENCE, HEAD, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    try:
        return SDPBackend(torch._fused_sdp_choice(q, q, q, None, 0.0, True)).name
    except Exception:  # a private function, which may change
        return ""


def step_of(model, masters, optimizer, batches):
    for tokens, labels in batches:
        (model(tokens, labels) / len(batches)).backward()
    parameters = list(model.parameters())
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    for master, p in zip(masters, parameters):
        master.grad = p.grad.float()
    optimizer.step()
    with torch.no_grad():
        torch._foreach_copy_(parameters, masters)
    for master, p in zip(masters, parameters):
        master.grad = p.grad = None


def measure(name, backend, checkpointed=False, accumulation=1, compiled=False, steps=20):
    torch.manual_seed(0)
    gc.collect()  # the model before may hang in a cycle of references
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    model = Decoder(checkpointed).to(device="cuda", dtype=torch.bfloat16)
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:
                p.normal_(0, 0.02)
    masters = [p.detach().float().clone() for p in model.parameters()]
    optimizer = torch.optim.AdamW(masters, lr=1e-4, fused=True)
    run = torch.compile(model) if compiled else model
    batches = batches_of(accumulation)
    times = []
    with attention_by(backend):
        for i in range(steps + 3):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            step_of(run, masters, optimizer, batches)
            torch.cuda.synchronize()
            if i >= 3:
                times.append(time.perf_counter() - begin)
    times.sort()
    row = {"name": name, "step_s": statistics.median(times), "low_s": times[0], "high_s": times[-1],
           "max_memory_allocated": torch.cuda.max_memory_allocated(),
           "memory_reserved": torch.cuda.memory_reserved(),
           "parameters": sum(p.numel() for p in model.parameters())}
    print(f"{name:28} step {row['step_s'] * 1e3:8.2f} ms  allocated {row['max_memory_allocated'] / 2**30:6.2f} GiB  "
          f"reserved {row['memory_reserved'] / 2**30:6.2f} GiB", flush=True)
    return row


def time_of(f, repetitions=10):
    times = []
    for i in range(repetitions + 3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        f()
        end.record()
        torch.cuda.synchronize()
        if i >= 3:
            times.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(times)


def attention(name, backend, sequence=8192, tokens=16384, heads=16):
    q, k, v = (torch.randn(tokens // sequence, heads, sequence, 128, device="cuda", dtype=torch.bfloat16,
                           requires_grad=True) for _ in range(3))
    with sdpa_kernel(backend):
        forward = time_of(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        dy = torch.randn_like(y)
        backward = time_of(lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True))
    flops = 4 * tokens * sequence * heads * 128 / 2
    print(f"attention {name:14} forward {forward * 1e3:7.3f} ms ({flops / forward / 1e12:5.0f} TFLOP/s)  "
          f"backward {backward * 1e3:7.3f} ms ({2.5 * flops / backward / 1e12:5.0f} TFLOP/s)", flush=True)
    return {"name": name, "sequence": sequence, "tokens": tokens, "heads": heads, "head_dim": 128,
            "forward_s": forward, "backward_s": backward}


def our_attention(path, row):
    """What `orrery calibrate --device cuda` measured of our kernel at the same shape: seconds by direction."""
    with open(path) as file:
        tables = json.load(file)["measured"]["ops"]
    samples = row["tokens"] // row["sequence"] * row["heads"]
    return {direction: sample["us"] * 1e-6 for direction in ("forward", "backward")
            for table in tables if table["kind"].startswith("attention/" + direction)
            for sample in table["samples"]
            if [sample["sizes"][i] for i in (0, 1, 3)] == [samples, row["sequence"], row["head_dim"]]}


def compare_attention(path, row):
    ours = our_attention(path, row)
    print(f"attention {'ours':14} " + "  ".join(
        f"{direction} {seconds * 1e3:7.3f} ms ({row[direction + '_s'] / seconds:4.0%} of PyTorch's {row['name']})"
        for direction, seconds in ours.items()), flush=True)
    return {"name": "ours", **{direction + "_s": seconds for direction, seconds in ours.items()}}


def attempt(results, kind, f, name, *arguments, **named):
    try:
        row = f(name, *arguments, **named)
    except Exception as error:  # one that fails must not hide the others
        print(f"{name}: failed: {error}", file=sys.stderr, flush=True)
        row = {"name": name, "error": str(error)}
    results.add(kind, row)


def about():
    return {"schema": "orrery.pytorch_step/1", "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "device": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(), "default_attention": default_backend(), "sequence": SEQUENCE, "micro_batch": BATCH}


def eager(results, steps):
    flash = SDPBackend.FLASH_ATTENTION
    for suffix, backend in ((DEFAULT, None), (PINNED, flash)):
        attempt(results, "steps", measure, "plain" + suffix, backend, steps=steps)
        attempt(results, "steps", measure, "checkpointing" + suffix, backend, checkpointed=True, steps=steps)
        attempt(results, "steps", measure, "accumulation" + suffix, backend, accumulation=4, steps=steps)
    attempt(results, "attention", attention, "flash", flash)


def others(results, steps, ours):
    flash, cudnn = SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION
    if ours and results.find("attention", "flash") is not None:
        attempt(results, "attention", lambda name: compare_attention(ours, results.find("attention", "flash")), "ours")
    attempt(results, "attention", attention, "cudnn", cudnn)
    attempt(results, "steps", measure, "cudnn attention", cudnn, steps=steps)
    attempt(results, "steps", measure, "torch.compile", flash, compiled=True, steps=steps)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", help="where to write the rows, each at once; those of other names there are kept")
    parser.add_argument("--ours", help="the .kernels.json that orrery calibrate wrote on this GPU")
    parser.add_argument("--only", choices=["eager", "others"], help="eager: what is judged; others: the rest")
    parser.add_argument("--steps", type=int, default=20)
    o = parser.parse_args()
    results = Results(o.out, about())
    if o.only != "others":
        eager(results, o.steps)
    if o.only != "eager":
        others(results, o.steps, o.ours)
    if any("error" in row for row in results.content["steps"] + results.content["attention"]):
        sys.exit(1)


if __name__ == "__main__":
    main()
