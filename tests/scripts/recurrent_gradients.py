#!/usr/bin/env python3
"""recurrent_gradients.py FILE...: fills in grad.p.* of conformance cases of rnn, gru and lstm.

The cases' outputs and grad.x come from PyTorch, but their grad.p.* were zeros: its parameters had been left out of the
graph. Here each gradient is Im(L(p + ih)) / h with L = sum(gout * y) and h = 1e-30 (the complex step: no difference is
taken, so it is exact to the last digits), by a forward pass of its own that knows nothing of rapt's. The outputs and
grad.x in the file are checked on the way.
"""
import array
import cmath
import json
import struct
import sys

STEP = 1e-30


def sigmoid(a):
    return 1 / (1 + cmath.exp(-a))


def affine(weight, x, bias):
    return [sum(w * v for w, v in zip(row, x)) + b for row, b in zip(weight, bias)]


def rnn(a, b, h, c):
    return [cmath.tanh(p + q) for p, q in zip(a, b)], c


def gru(a, b, h, c):
    n, out = len(h), []
    for i in range(n):
        r, z = sigmoid(a[i] + b[i]), sigmoid(a[n + i] + b[n + i])
        out.append((1 - z) * cmath.tanh(a[2 * n + i] + r * b[2 * n + i]) + z * h[i])
    return out, c


def lstm(a, b, h, c):
    n, states = len(h), []
    gates = [p + q for p, q in zip(a, b)]
    for i in range(n):
        state = sigmoid(gates[n + i]) * c[i] + sigmoid(gates[i]) * cmath.tanh(gates[2 * n + i])
        states.append((sigmoid(gates[3 * n + i]) * cmath.tanh(state), state))
    return [s[0] for s in states], [s[1] for s in states]


CELLS = {'rnn': rnn, 'gru': gru, 'lstm': lstm}


def rows(flat, columns):
    return [flat[i:i + columns] for i in range(0, len(flat), columns)]


def outputs(cell, values, shape):
    """y [B*T*H] from x [B,T,D] and the parameters, all flat lists."""
    batch, steps, dim = shape['in.x']
    hidden = shape['in.p.weight_hh_l0'][1]
    w_ih, w_hh = rows(values['in.p.weight_ih_l0'], dim), rows(values['in.p.weight_hh_l0'], hidden)
    x, y = rows(values['in.x'], dim), []
    for row in range(batch):
        h, c = [0] * hidden, [0] * hidden
        for t in range(steps):
            a = affine(w_ih, x[row * steps + t], values['in.p.bias_ih_l0'])
            h, c = cell(a, affine(w_hh, h, values['in.p.bias_hh_l0']), h, c)
            y += h
    return y


def gradient(cell, values, shape, name):
    result = []
    for i in range(len(values[name])):
        moved = dict(values)
        moved[name] = list(values[name])
        moved[name][i] += 1j * STEP
        y = outputs(cell, moved, shape)
        result.append(sum(g * v for g, v in zip(values['gout.y'], y)).imag / STEP)
    return result


def check(path, what, got, want, rtol, atol):
    for g, w in zip(got, want):
        if abs(g - w) > atol + rtol * abs(w):
            sys.exit(f'{path}: {what}: {g} here, {w} in the file')


def fill_in(path):
    data = bytearray(open(path, 'rb').read())
    start = 8 + struct.unpack('<Q', data[:8])[0]
    header = json.loads(data[8:start])
    meta = header.pop('__metadata__')
    code = 'd' if meta['dtype'] == 'f64' else 'f'
    place = {n: (start + t['data_offsets'][0], start + t['data_offsets'][1]) for n, t in header.items()}
    values = {n: list(array.array(code, bytes(data[a:b]))) for n, (a, b) in place.items()}
    shape = {n: t['shape'] for n, t in header.items()}
    cell, rtol, atol = CELLS[meta['op']], float(meta['rtol']), float(meta['atol'])
    check(path, 'y', [v.real for v in map(complex, outputs(cell, values, shape))], values['out.y'], rtol, atol)
    check(path, 'grad.x', gradient(cell, values, shape, 'in.x'), values['grad.x'], rtol, atol)
    for name, (a, b) in place.items():
        if name.startswith('grad.p.'):
            data[a:b] = array.array(code, gradient(cell, values, shape, 'in.' + name[len('grad.'):])).tobytes()
    open(path, 'wb').write(data)


for file in sys.argv[1:]:
    fill_in(file)
