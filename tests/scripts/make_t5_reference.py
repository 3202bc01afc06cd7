#!/usr/bin/env python3
"""Writes tests/parity/t5 and tests/parity/t5_gated: a small T5's config.json and model.safetensors, and in
expected.safetensors the logits, the loss and all gradients that PyTorch gets for them.

    python3 tests/scripts/make_t5_reference.py tests/parity

Needs PyTorch alone (made with 1.13). The model is written here from the paper (Raffel et al. 2020) and from the rules
of Hugging Face's T5ForConditionalGeneration, whose names it uses: RMS-norm before each sublayer, scores that aren't
scaled, relative positions from the first layer of a stack in all its layers, a decoder that starts with padding, a
tied head whose input is divided by sqrt(d_model). Weights are rounded to f32, everything is computed in f64."""
import json
import math
import os
import struct
import sys

import torch
import torch.nn.functional as F

COMMON = dict(model_type="t5", architectures=["T5ForConditionalGeneration"], vocab_size=20, d_model=8, d_kv=6,
              num_heads=2, d_ff=12, num_layers=2, num_decoder_layers=2, layer_norm_epsilon=1e-6, dropout_rate=0.0,
              is_encoder_decoder=True, pad_token_id=0, decoder_start_token_id=0, eos_token_id=1)
VARIANTS = {
    "t5": dict(relative_attention_num_buckets=16, relative_attention_max_distance=32, feed_forward_proj="relu",
               tie_word_embeddings=True),
    "t5_gated": dict(relative_attention_num_buckets=32, relative_attention_max_distance=128,
                     feed_forward_proj="gated-gelu", tie_word_embeddings=False),
}
ROWS, SOURCE, TARGET = 2, 40, 36  # some distances are beyond the first's maximum; buckets hold several


def make_weights(c):
    generator = torch.Generator().manual_seed(7)
    weights = {}

    def normal(name, *shape, deviation):
        weights[name] = torch.randn(*shape, generator=generator, dtype=torch.float64) * deviation

    def norm(name):
        weights[name] = 1 + 0.2 * torch.randn(c["d_model"], generator=generator, dtype=torch.float64)

    def attention(name):
        width = c["num_heads"] * c["d_kv"]
        normal(name + ".q.weight", width, c["d_model"], deviation=0.2)
        normal(name + ".k.weight", width, c["d_model"], deviation=0.3)
        normal(name + ".v.weight", width, c["d_model"], deviation=0.3)
        normal(name + ".o.weight", c["d_model"], width, deviation=0.3)

    def feed_forward(name):
        for part in ("wi_0", "wi_1") if c["feed_forward_proj"].startswith("gated-") else ("wi",):
            normal(f"{name}.{part}.weight", c["d_ff"], c["d_model"], deviation=0.3)
        normal(name + ".wo.weight", c["d_model"], c["d_ff"], deviation=0.3)

    normal("shared.weight", c["vocab_size"], c["d_model"], deviation=1)
    for stack, layers in (("encoder", c["num_layers"]), ("decoder", c["num_decoder_layers"])):
        for i in range(layers):
            block = f"{stack}.block.{i}.layer."
            attention(block + "0.SelfAttention")
            if i == 0:
                normal(block + "0.SelfAttention.relative_attention_bias.weight", c["relative_attention_num_buckets"],
                       c["num_heads"], deviation=0.5)
            norm(block + "0.layer_norm.weight")
            if stack == "decoder":
                attention(block + "1.EncDecAttention")
                norm(block + "1.layer_norm.weight")
            last = 2 if stack == "decoder" else 1
            feed_forward(f"{block}{last}.DenseReluDense")
            norm(f"{block}{last}.layer_norm.weight")
        norm(stack + ".final_layer_norm.weight")
    if not c["tie_word_embeddings"]:
        normal("lm_head.weight", c["vocab_size"], c["d_model"], deviation=0.3)
    return {name: w.float().double().requires_grad_() for name, w in weights.items()}


def buckets(queries, keys, bidirectional, count, max_distance):
    """Which bucket the distance between each query and each key is in."""
    offset = torch.arange(keys)[None, :] - torch.arange(queries)[:, None]
    result = torch.zeros_like(offset)
    if bidirectional:
        count //= 2
        result += (offset > 0).long() * count
        distance = offset.abs()
    else:
        distance = -torch.min(offset, torch.zeros_like(offset))
    exact = count // 2
    large = exact + (torch.log(distance.float() / exact) / math.log(max_distance / exact) * (count - exact)).long()
    return result + torch.where(distance < exact, distance, torch.min(large, torch.full_like(large, count - 1)))


class T5:
    def __init__(self, config):
        self.c = config
        self.w = make_weights(config)

    def norm(self, name, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.c["layer_norm_epsilon"]) * self.w[name]

    def attention(self, name, x, memory, bias):
        def heads(y):
            return y.view(y.shape[0], y.shape[1], self.c["num_heads"], self.c["d_kv"]).transpose(1, 2)

        q, k, v = (heads(y @ self.w[f"{name}.{part}.weight"].T) for y, part in ((x, "q"), (memory, "k"), (memory, "v")))
        mixed = F.softmax(q @ k.transpose(2, 3) + bias, -1) @ v
        return mixed.transpose(1, 2).reshape(x.shape[0], x.shape[1], -1) @ self.w[name + ".o.weight"].T

    def feed_forward(self, name, x):
        def linear(part, y):
            return y @ self.w[f"{name}.{part}.weight"].T

        if self.c["feed_forward_proj"] == "relu":
            return linear("wo", F.relu(linear("wi", x)))
        gate = linear("wi_0", x)
        gate = 0.5 * gate * (1 + torch.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate.pow(3))))
        return linear("wo", gate * linear("wi_1", x))

    def position_bias(self, stack, tokens):
        ids = buckets(tokens, tokens, stack == "encoder", self.c["relative_attention_num_buckets"],
                      self.c["relative_attention_max_distance"])
        table = self.w[f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
        return table[ids].permute(2, 0, 1)[None]  # [1,H,T,T]

    def stack(self, stack, layers, ids, mask, memory=None, memory_mask=None):
        x = self.w["shared.weight"][ids]
        bias = self.position_bias(stack, ids.shape[1]) + mask
        for i in range(layers):
            block = f"{stack}.block.{i}.layer."
            h = self.norm(block + "0.layer_norm.weight", x)
            x = x + self.attention(block + "0.SelfAttention", h, h, bias)
            if memory is not None:
                h = self.norm(block + "1.layer_norm.weight", x)
                x = x + self.attention(block + "1.EncDecAttention", h, memory, memory_mask)
            last = f"{block}{1 if memory is None else 2}."
            x = x + self.feed_forward(last + "DenseReluDense", self.norm(last + "layer_norm.weight", x))
        return self.norm(stack + ".final_layer_norm.weight", x)

    def logits(self, source, target):
        forbidden = torch.finfo(torch.float64).min
        padding = (source == self.c["pad_token_id"])[:, None, None, :].double() * forbidden
        later = torch.full((target.shape[1],) * 2, forbidden, dtype=torch.float64).triu(1)
        memory = self.stack("encoder", self.c["num_layers"], source, padding)
        x = self.stack("decoder", self.c["num_decoder_layers"], target, later, memory, padding)
        if self.c["tie_word_embeddings"]:
            return (x * self.c["d_model"] ** -0.5) @ self.w["shared.weight"].T
        return x @ self.w["lm_head.weight"].T


def save(path, tensors):
    """safetensors: the header's length, the header, the data; integers as I32, everything else as F32."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        integer = not tensor.dtype.is_floating_point
        values = tensor.detach().contiguous().to(torch.int32 if integer else torch.float32)
        raw = values.numpy().tobytes()
        header[name] = {"dtype": "I32" if integer else "F32", "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def make(directory, config):
    os.makedirs(directory, exist_ok=True)
    generator = torch.Generator().manual_seed(11)
    source = torch.randint(2, config["vocab_size"], (ROWS, SOURCE), generator=generator)
    labels = torch.randint(2, config["vocab_size"], (ROWS, TARGET), generator=generator)
    source[1, 25:] = config["pad_token_id"]
    labels[1, 28:] = -100
    target = torch.cat([torch.full((ROWS, 1), config["decoder_start_token_id"]), labels[:, :-1]], 1)
    target = target.masked_fill(target == -100, config["pad_token_id"])
    model = T5(config)
    logits = model.logits(source, target)
    loss = F.cross_entropy(logits.reshape(-1, config["vocab_size"]), labels.reshape(-1), ignore_index=-100)
    loss.backward()
    with open(os.path.join(directory, "config.json"), "w") as file:
        json.dump(config, file, indent=2)
        file.write("\n")
    save(os.path.join(directory, "model.safetensors"), model.w)
    expected = {"in.source": source, "in.labels": labels, "in.target": target, "out.logits": logits, "out.loss": loss}
    expected.update({"grad." + name: weight.grad for name, weight in model.w.items()})
    save(os.path.join(directory, "expected.safetensors"), expected)


for variant, options in VARIANTS.items():
    make(os.path.join(sys.argv[1], variant), {**COMMON, **options})
