#!/usr/bin/env python3
"""Reference quantization in numpy, written from the definitions and sharing nothing with the Go code: makes testdata/golden/quant.safetensors.

Needs numpy, ml_dtypes, safetensors. Run from the repository's root: python3 testdata/make/quant.py

Tensors: x/<case> float32 [rows, cols]; for each scheme <case>/<format>.axis<a>.block<b>[.double]/{codes (one to a byte),scales,values}, and for
double quantization also {scale_codes,steps,offset}.
"""
import os

import numpy as np
import ml_dtypes
from safetensors.numpy import save_file

f32 = np.float32
NF4 = np.array([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
                -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
                0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
                0.7229568362236023, 1.0], f32)
MIDDLES = ((NF4[:-1].astype(np.float64) + NF4[1:].astype(np.float64)) / 2).astype(f32)
LEVELS = {"int8": 127, "fp8": 448, "int4": 7, "nf4": 1}


def group_index(shape, axis, block):
    """For every element the number of its scale."""
    r, c = np.indices(shape)
    if block == 0:
        return (r if axis == 0 else c), (shape[0] if axis == 0 else shape[1],)
    if axis == 1:
        n = -(-shape[1] // block)
        return r * n + c // block, (shape[0], n)
    return (r // block) * shape[1] + c, (-(-shape[0] // block), shape[1])


def pack(x, fmt, axis, block):
    index, scale_shape = group_index(x.shape, axis, block)
    m = np.zeros(int(np.prod(scale_shape)), f32)
    np.maximum.at(m, index.ravel(), np.abs(x).ravel())
    s = m / f32(LEVELS[fmt])
    per = s[index] if x.size else np.zeros(x.shape, f32)
    with np.errstate(all="ignore"):
        v = (x / per).astype(f32)
    if fmt == "int8":
        code = np.clip(np.rint(v), -127, 127).astype(np.float64)
        code = np.where(per > 0, code, 0).astype(np.int8).view(np.uint8)
    elif fmt == "int4":
        code = np.clip(np.rint(v), -7, 7).astype(np.float64)
        code = np.where(per > 0, code, 0).astype(np.int8).view(np.uint8) & 15
    elif fmt == "fp8":
        code = np.clip(v, -448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
        code = np.where(per > 0, code, 0).astype(np.uint8)
    else:
        code = (v[..., None] > MIDDLES).sum(-1).astype(np.uint8)
        code = np.where(per > 0, code, 7).astype(np.uint8)
    return code, s.reshape(scale_shape), index


def unpack(code, s, index, fmt):
    if fmt == "int8":
        q = code.view(np.int8).astype(f32)
    elif fmt == "int4":
        q = ((code.astype(np.int16) ^ 8) - 8).astype(f32)
    elif fmt == "fp8":
        q = code.view(ml_dtypes.float8_e4m3fn).astype(f32)
    else:
        q = NF4[code]
    return q * s.ravel()[index] if code.size else np.zeros(code.shape, f32)


def double(s):
    flat = s.ravel()
    if flat.size == 0:
        return np.zeros(0, np.int8), np.zeros(0, f32), f32(0)
    total = 0.0
    for v in flat:
        total += float(v)
    offset = f32(total / flat.size)
    codes, steps = np.zeros(flat.size, np.int8), []
    for at in range(0, flat.size, 256):
        d = flat[at:at + 256] - offset
        step = np.abs(d).max() / f32(127)
        steps.append(step)
        if step > 0:
            codes[at:at + 256] = np.clip(np.rint(d / step), -127, 127).astype(np.int8)
    return codes, np.array(steps, f32), offset


def undouble(codes, steps, offset, shape):
    per = np.repeat(steps, 256)[:codes.size]
    return (codes.astype(f32) * per + offset).astype(f32).reshape(shape)


def cases():
    rng = np.random.default_rng(7)
    normal = lambda *s: rng.standard_normal(s).astype(f32)
    yield "normal", normal(12, 70) * f32(0.02)
    yield "odd", normal(5, 33)
    yield "blocks", normal(64, 64)
    yield "constant", np.full((3, 40), 0.37, f32)
    outlier = normal(6, 130) * f32(0.01)
    outlier[1, 5], outlier[4, 100] = 30, -7
    yield "outlier", outlier
    zeros = normal(4, 96)
    zeros[1] = 0
    zeros[:, 7] = 0
    zeros[2, 32:64] = 0
    yield "zeros", zeros
    yield "empty", np.zeros((0, 8), f32)
    yield "tiny", np.array([[1e-44, -3e-45, 0, 1e-40], [1e-30, 2e-38, -1e-38, 1.2e-38]], f32)
    yield "huge", np.array([[3e38, -1e38, 5e37, 1], [2e38, 3.4e38, -3.4e38, 0]], f32)
    yield "bf16", normal(9, 64).astype(ml_dtypes.bfloat16).astype(f32)
    ties = (np.arange(-130, 131, dtype=f32) / 2)[None].repeat(2, 0).copy()
    ties[0, 0], ties[1, 0] = 127, 448
    yield "ties", ties
    yield "many", normal(20, 512) * np.abs(normal(20, 1))


def main():
    out = {}
    for name, x in cases():
        out["x/" + name] = x
        schemes = [(f, a, 0, False) for f in ("int8", "fp8") for a in (0, 1)]
        schemes += [(f, 1, 32, d) for f in ("int4", "nf4") for d in (False, True)]
        if name in ("outlier", "zeros", "empty"):
            schemes += [(f, a, b, False) for f in ("int4", "nf4") for a, b in ((1, 64), (0, 32), (1, 128))]
        if name == "many":
            schemes = [("nf4", 1, 32, True)]
        for fmt, axis, block, twice in schemes:
            code, s, index = pack(x, fmt, axis, block)
            at = f"{name}/{fmt}.axis{axis}.block{block}" + (".double" if twice else "")
            out[at + "/codes"], out[at + "/scales"] = code, s
            if twice:
                c, steps, offset = double(s)
                out[at + "/scale_codes"], out[at + "/steps"], out[at + "/offset"] = c, steps, np.array([offset], f32)
                s = undouble(c, steps, offset, s.shape)
            out[at + "/values"] = unpack(code, s, index, fmt)
    save_file({k: np.ascontiguousarray(v) for k, v in sorted(out.items())}, "testdata/golden/quant.safetensors")
    os.chmod("testdata/golden/quant.safetensors", 0o644)
    print(len(out), "tensors", sum(v.nbytes for v in out.values()), "bytes")


if __name__ == "__main__":
    main()
