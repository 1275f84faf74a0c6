#!/usr/bin/env python3
"""Counts the bytes of a model's weights if the frozen ones are stored as nf4 in blocks of 64, from the ONNX file alone and sharing nothing with
the Go code. Needs onnx. python3 testdata/make/weight_bytes.py MODEL.onnx [BLOCK]

The rule: a float initializer of two or more axes and at least 512 elements that MatMul, Gemm or Conv takes as an operand (seen through
Transpose, Cast, Reshape, Slice, Identity) has 4 bits an element, rounded up to a byte, and a float32 for each block of each row; rows are the
first axis where the op multiplies by its transpose, else blocks run down the columns. All other weights keep their type. A weight is an initializer
that stands for something learned: what lies outside the file, where an exporter put its parameters there, else all floats with at least one axis
and two elements.
"""
import sys

import onnx
from onnx import TensorProto as T

WIDTH = {T.FLOAT: 4, T.BFLOAT16: 2, T.FLOAT16: 2, T.DOUBLE: 8}
MOVES = {"Transpose", "Cast", "Reshape", "Slice", "Identity", "Unsqueeze", "Squeeze"}
WEIGHT_AT = {"MatMul": (0, 1), "Gemm": (0, 1), "Conv": (1,), "ConvTranspose": (1,)}


def elems(t):
    n = 1
    for d in t.dims:
        n *= d
    return n


def main():
    graph = onnx.load(sys.argv[1], load_external_data=False).graph
    block = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    users = {}
    for node in graph.node:
        for i, name in enumerate(node.input):
            users.setdefault(name, []).append((node, i))

    def turned_reader(name, turned, depth=0):
        """The first op that multiplies by the tensor: True/False for stored [out,in] or [in,out]; None if there is none."""
        for node, i in users.get(name, []):
            kind = node.op_type
            if kind in WEIGHT_AT and i in WEIGHT_AT[kind]:
                trans = turned
                if kind == "Gemm":
                    flag = {a.name: a.i for a in node.attribute}.get("transB" if i == 1 else "transA", 0)
                    trans = trans != bool(flag)
                return (trans if i == 1 else not trans) if kind in ("MatMul", "Gemm") else True
            if kind in MOVES and i == 0 and depth < 8:
                found = turned_reader(node.output[0], turned != (kind == "Transpose"), depth + 1)
                if found is not None:
                    return found
        return None

    outside = any(t.data_location == T.EXTERNAL for t in graph.initializer)
    total = packed = 0
    rows = {}
    for t in graph.initializer:
        if t.data_type not in WIDTH or not t.dims or elems(t) < 2 or outside and t.data_location != T.EXTERNAL:  # numbers of a formula
            continue
        size = elems(t) * WIDTH[t.data_type]
        reader = turned_reader(t.name, False) if len(t.dims) >= 2 else None
        if reader is not None and elems(t) >= 512:
            r, c = t.dims[0], elems(t) // t.dims[0]
            groups = r * -(-c // block) if reader else -(-r // block) * c
            stored = -(-elems(t) // 2) + 4 * groups
            if 4 * stored <= 3 * size:
                rows["nf4"] = [rows.get("nf4", [0, 0])[0] + 1, rows.get("nf4", [0, 0])[1] + stored]
                total += stored
                continue
        key = T.DataType.Name(t.data_type)
        rows[key] = [rows.get(key, [0, 0])[0] + 1, rows.get(key, [0, 0])[1] + size]
        total += size
    for key in sorted(rows):
        print(f"{key:10} {rows[key][0]:6} {rows[key][1]:16,}")
    print(f"{'all':10} {'':6} {total:16,}")


if __name__ == "__main__":
    main()
