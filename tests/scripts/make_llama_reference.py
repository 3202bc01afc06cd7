#!/usr/bin/env python3
"""Writes tests/parity/llama: a small LLaMA-style decoder with random weights, its logits, loss, gradients and a greedy
continuation, computed in float64 by plain PyTorch (any version from 1.13), from the formulas of the papers alone:
RMS-norm (Zhang, Sennrich 2019), rotary positions on halves (Su et al. 2021), SwiGLU (Shazeer 2020), heads of keys and
values shared by groups of query heads (Ainslie et al. 2023).

usage: make_llama_reference.py DIRECTORY
"""
import json
import math
import os
import struct
import sys

import torch

VOCAB, D, H, KV, F = 31, 16, 4, 2, 20
SIZE = D // H
CONFIG = {
    'model_type': 'llama', 'architectures': ['LlamaForCausalLM'], 'vocab_size': VOCAB, 'max_position_embeddings': 24,
    'hidden_size': D, 'num_hidden_layers': 2, 'num_attention_heads': H, 'num_key_value_heads': KV,
    'intermediate_size': F, 'hidden_act': 'silu', 'rms_norm_eps': 1e-5, 'rope_theta': 500.0,
    'attention_bias': False, 'tie_word_embeddings': False,
}


def write_safetensors(path, tensors):
    header, data = {'__metadata__': {'format': 'pt'}}, b''
    for name, tensor in sorted(tensors.items()):
        kind, code, values = ('I32', 'i', tensor.int()) if not tensor.is_floating_point() else ('F32', 'f', tensor.float())
        values = values.flatten().tolist()
        raw = struct.pack(f'<{len(values)}{code}', *values)
        header[name] = {'dtype': kind, 'shape': list(tensor.shape), 'data_offsets': [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text + data)


def make_weights():
    shapes = {'model.embed_tokens.weight': (VOCAB, D), 'model.norm.weight': (D,), 'lm_head.weight': (VOCAB, D)}
    for i in range(2):
        layer = f'model.layers.{i}.'
        shapes.update({
            layer + 'self_attn.q_proj.weight': (D, D), layer + 'self_attn.k_proj.weight': (KV * SIZE, D),
            layer + 'self_attn.v_proj.weight': (KV * SIZE, D), layer + 'self_attn.o_proj.weight': (D, D),
            layer + 'mlp.gate_proj.weight': (F, D), layer + 'mlp.up_proj.weight': (F, D),
            layer + 'mlp.down_proj.weight': (D, F), layer + 'input_layernorm.weight': (D,),
            layer + 'post_attention_layernorm.weight': (D,)})
    weights = {}
    for name, shape in shapes.items():
        values = torch.randn(shape) * (0.1 if len(shape) == 1 else 0.3) + (1 if len(shape) == 1 else 0)
        weights[name] = values.float().double().requires_grad_()
    return weights


def rms_norm(x, weight):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + CONFIG['rms_norm_eps']) * weight


def rotate(x):
    length = x.shape[2]
    angles = torch.arange(length)[:, None] * CONFIG['rope_theta'] ** (-torch.arange(0, SIZE, 2).double() / SIZE)
    a, b = x[..., :SIZE // 2], x[..., SIZE // 2:]
    cosine, sine = angles.cos(), angles.sin()
    return torch.cat([a * cosine - b * sine, a * sine + b * cosine], -1)


def attention(w, layer, x):
    batch, length, _ = x.shape

    def heads(name, count):
        return (x @ w[layer + f'self_attn.{name}_proj.weight'].T).view(batch, length, count, SIZE).transpose(1, 2)

    q, k, v = rotate(heads('q', H)), rotate(heads('k', KV)), heads('v', KV)
    k, v = (t.repeat_interleave(H // KV, 1) for t in (k, v))
    hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
    scores = (q @ k.transpose(-2, -1) / math.sqrt(SIZE)).masked_fill(hidden, float('-inf'))
    y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, D)
    return y @ w[layer + 'self_attn.o_proj.weight'].T


def logits_of(w, ids):
    x = w['model.embed_tokens.weight'][ids]
    for i in range(2):
        layer = f'model.layers.{i}.'
        x = x + attention(w, layer, rms_norm(x, w[layer + 'input_layernorm.weight']))
        h = rms_norm(x, w[layer + 'post_attention_layernorm.weight'])
        gate = h @ w[layer + 'mlp.gate_proj.weight'].T
        up = h @ w[layer + 'mlp.up_proj.weight'].T
        x = x + (gate * torch.sigmoid(gate) * up) @ w[layer + 'mlp.down_proj.weight'].T
    return rms_norm(x, w['model.norm.weight']) @ w['lm_head.weight'].T


def continue_greedily(w, prompt, count):
    ids = list(prompt)
    for _ in range(count):
        ids.append(int(logits_of(w, torch.tensor([ids]))[0, -1].argmax()))
    return ids


def main(directory):
    torch.manual_seed(5)
    torch.set_default_dtype(torch.float64)
    w = make_weights()
    tokens = torch.randint(0, VOCAB, (3, 13))
    logits = logits_of(w, tokens[:, :-1])
    loss = torch.nn.functional.cross_entropy(logits.reshape(-1, VOCAB), tokens[:, 1:].reshape(-1))
    loss.backward()
    expected = {'in.tokens': tokens, 'out.logits': logits.detach(), 'out.loss': loss.detach()}
    expected.update({'grad.' + name: value.grad for name, value in w.items()})
    with torch.no_grad():
        expected['greedy.tokens'] = torch.tensor(continue_greedily(w, [7, 3, 11], 20))
    expected['greedy.prompt'] = torch.tensor([7, 3, 11])
    os.makedirs(directory, exist_ok=True)
    write_safetensors(os.path.join(directory, 'model.safetensors'), {n: v.detach() for n, v in w.items()})
    write_safetensors(os.path.join(directory, 'expected.safetensors'), expected)
    with open(os.path.join(directory, 'config.json'), 'w') as file:
        json.dump(CONFIG, file, indent=2)
        file.write('\n')


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
