#!/usr/bin/env python3
"""saved_models.py RESAVE GPT_TRAIN GPT_GENERATE PARITY...: what rapt saves, read by others.

Each folder of PARITY has a model with Hugging Face's names. Loaded and saved again it must hold the same tensors, to the
bit, and a config.json that says the same. Files are read with Python's json and struct alone, by the format's own rules.
Where there is PyTorch, a GPT that gpt_train made is run in it, as GPT2LMHeadModel would, and gives the same logits.
"""
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

SIZES = {'F64': 8, 'F32': 4, 'F16': 2, 'BF16': 2, 'I64': 8, 'I32': 4, 'BOOL': 1}


def read_tensors(path):
    """{name: (dtype, shape, bytes)} and the metadata; the format's rules are checked."""
    with open(path, 'rb') as file:
        data = file.read()
    length = struct.unpack('<Q', data[:8])[0]
    assert (8 + length) % 8 == 0, f'{path}: elements are not aligned'
    header = json.loads(data[8:8 + length].decode('utf-8'))
    metadata = header.pop('__metadata__', {})
    tensors, end = {}, 0
    for name, info in sorted(header.items(), key=lambda item: item[1]['data_offsets']):
        begin, last = info['data_offsets']
        assert begin == end, f'{path}: {name}: a gap'
        assert last - begin == SIZES[info['dtype']] * math.prod(info['shape']), f'{path}: {name}: wrong size'
        tensors[name] = info['dtype'], info['shape'], data[8 + length + begin:8 + length + last]
        end = last
    assert 8 + length + end == len(data), f'{path}: bytes of no tensor'
    return tensors, metadata


def read_config(directory):
    with open(os.path.join(directory, 'config.json'), encoding='utf-8') as file:
        return json.load(file)


def check_config(want, got):
    for field, value in want.items():
        if field == 'num_labels':  # Hugging Face writes their names instead, and reads those
            assert len(got['id2label']) == value, f'id2label is {got["id2label"]}'
        else:
            assert got.get(field) == value, f'{field} is {got.get(field)}, not {value}'


def check_resaved(resave, directory, place):
    subprocess.run([resave, directory, place], check=True)
    want, _ = read_tensors(os.path.join(directory, 'model.safetensors'))
    got, metadata = read_tensors(os.path.join(place, 'model.safetensors'))
    assert metadata == {'format': 'pt'}, f'the metadata is {metadata}'
    assert sorted(want) == sorted(got), f'other names: {set(want) ^ set(got)}'
    for name in want:
        assert want[name] == got[name], f'{name} differs'
    check_config(read_config(directory), read_config(place))
    print(f'{os.path.basename(directory)}: {len(got)} tensors are the same')


def gpt2_logits(torch, tensors, config, ids):
    """[T,V], as transformers' modeling_gpt2.py computes them."""
    functional = torch.nn.functional
    weight = {name: torch.frombuffer(bytearray(data), dtype=torch.float32).reshape(shape).double()
              for name, (_, shape, data) in tensors.items()}
    heads, width = config['n_head'], config['n_embd']

    def conv1d(x, name):
        return x @ weight[name + '.weight'] + weight[name + '.bias']

    def norm(x, name):
        return functional.layer_norm(x, (width,), weight[name + '.weight'], weight[name + '.bias'],
                                     config['layer_norm_epsilon'])

    def attention(x, name):
        q, k, v = (part.reshape(len(ids), heads, -1).transpose(0, 1) for part in conv1d(x, name + 'c_attn').split(width, 1))
        scores = q @ k.transpose(1, 2) / math.sqrt(width // heads)
        scores = scores.masked_fill(torch.ones(len(ids), len(ids), dtype=torch.bool).triu(1), -math.inf)
        return conv1d((scores.softmax(-1) @ v).transpose(0, 1).reshape(len(ids), width), name + 'c_proj')

    x = weight['transformer.wte.weight'][ids] + weight['transformer.wpe.weight'][:len(ids)]
    for layer in range(config['n_layer']):
        name = f'transformer.h.{layer}.'
        x = x + attention(norm(x, name + 'ln_1'), name + 'attn.')
        h = conv1d(norm(x, name + 'ln_2'), name + 'mlp.c_fc')
        gelu = 0.5 * h * (1 + torch.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h ** 3)))
        x = x + conv1d(gelu, name + 'mlp.c_proj')
    return norm(x, 'transformer.ln_f') @ weight['transformer.wte.weight'].T


def check_in_pytorch(train, generate, place):
    try:
        import torch
    except ImportError:
        print('no PyTorch: a model of gpt_train was not run in it')
        return
    subprocess.run([train, '--layers', '2', '--heads', '2', '--dim', '16', '--context', '16', '--batch', '4', '--steps',
                    '20', '--eval-batches', '1', '--out', place, '--quiet'], check=True)
    ids = [5, 1, 60, 33, 2, 2, 17]
    shown = subprocess.run([generate, '--model', place, '--ids', ' '.join(map(str, ids)), '--logits'], check=True,
                           stdout=subprocess.PIPE).stdout
    ours = torch.tensor([[float(x) for x in line.split()] for line in shown.decode().splitlines()], dtype=torch.float64)
    tensors, _ = read_tensors(os.path.join(place, 'model.safetensors'))
    theirs = gpt2_logits(torch, tensors, read_config(place), ids)
    worst = ((ours - theirs).abs().max() / theirs.abs().max()).item()
    assert worst < 1e-5, f'PyTorch computes other logits: {worst}'
    print(f'PyTorch computes the same logits to {worst:.1e}')


def main():
    resave, train, generate, *directories = sys.argv[1:]
    with tempfile.TemporaryDirectory() as place:
        for i, directory in enumerate(directories):
            check_resaved(resave, directory, os.path.join(place, str(i)))
        check_in_pytorch(train, generate, os.path.join(place, 'trained'))


main()
