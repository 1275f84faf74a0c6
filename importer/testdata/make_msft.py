"""Makes msft.json: tiny models with ops of com.microsoft, with inputs and the outputs that ONNX Runtime gives for them.

    pip install onnx onnxruntime numpy
    python make_msft.py

Inputs come from a fixed seed. Operands given as Const are initializers.
"""
import base64
import json
import os

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(11)
cases = []


class Const:
    def __init__(self, x):
        self.x = x


def f(*shape, lo=-1.0, hi=1.0):
    return rng.uniform(lo, hi, shape).astype(np.float32)


def i32(*xs):
    return np.array(xs, np.int32)


def u8(*shape):
    return rng.integers(0, 256, shape).astype(np.uint8)


def case(op, operands, outs=1, tag="", domain="com.microsoft", skip=(), **attrs):
    names, feeds, inits, infos = [], {}, [], []
    for k, x in enumerate(operands):
        if x is None:
            names.append("")
        elif isinstance(x, Const):
            names.append(f"c{k}")
            inits.append(numpy_helper.from_array(x.x, f"c{k}"))
        else:
            names.append(f"x{k}")
            feeds[f"x{k}"] = x
            infos.append(helper.make_tensor_value_info(f"x{k}", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape))
    ys = [f"y{k}" if k not in skip else "" for k in range(outs)]
    node = helper.make_node(op, names, ys, name="n", domain=domain, **attrs)
    graph = helper.make_graph([node], "g", infos, [helper.make_value_info(y, helper.make_tensor_type_proto(TensorProto.FLOAT, None)) for y in ys if y], inits)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8, producer_name="make_msft")
    # Element types of outputs are the runtime's to say: a second model asks without declaring them.
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    for o in bare.graph.output:
        o.ClearField("type")
    opts = onnxruntime.SessionOptions()
    opts.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    want = onnxruntime.InferenceSession(bare.SerializeToString(), opts, providers=["CPUExecutionProvider"]).run(None, feeds)
    for o, w in zip(model.graph.output, want):
        o.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(w.dtype)
    cases.append({
        "name": op + ("-" + tag if tag else ""),
        "model": base64.b64encode(model.SerializeToString()).decode(),
        "inputs": {k: dump(v) for k, v in feeds.items()},
        "outputs": {o.name: dump(np.asarray(v)) for o, v in zip(model.graph.output, want)},
    })


def dump(a):
    kind = {"float32": "f32", "float64": "f64", "int64": "i64", "int32": "i32", "bool": "bool", "uint8": "u8", "int8": "i8", "float16": "f16"}[str(a.dtype)]
    flat = [str(x) if not np.isfinite(x) else (round(float(x), 7) if a.dtype.kind == "f" else int(x)) for x in a.ravel().tolist()]
    return {"dtype": kind, "shape": list(a.shape), "data": flat}


case("FusedMatMul", [f(2, 3, 4), f(2, 4, 5)], alpha=0.5)
case("FusedMatMul", [f(2, 4, 3), f(2, 5, 4)], tag="trans", transA=1, transB=1, alpha=2.0)
case("FusedMatMul", [f(3, 2, 4), f(4, 2, 5)], tag="batch", transBatchA=1, transBatchB=1)
case("FusedGemm", [f(2, 3), f(3, 4), f(4)], activation="Relu")
case("FusedGemm", [f(2, 3), f(4, 3), f(4)], tag="leaky", activation="LeakyRelu", activation_alpha=0.3, transB=1, alpha=0.5, beta=2.0)
case("FusedConv", [f(1, 2, 5, 5), f(3, 2, 3, 3), f(3)], activation="Relu", pads=[1, 1, 1, 1])
case("FusedConv", [f(1, 2, 5, 5), f(3, 2, 3, 3), f(3), f(1, 3, 3, 3)], tag="sum", activation="LeakyRelu", activation_params=[0.2])
case("FusedConv", [f(1, 2, 5, 5), f(3, 2, 3, 3)], tag="clip", activation="Clip", activation_params=[-0.5, 0.5], kernel_shape=[3, 3])
case("FusedConv", [f(1, 2, 5, 5), f(3, 2, 3, 3)], tag="hard", activation="HardSigmoid", activation_params=[0.3, 0.4])
case("Gelu", [f(2, 5, lo=-3, hi=3)])
case("FastGelu", [f(2, 5, lo=-3, hi=3)])
case("FastGelu", [f(2, 5, lo=-3, hi=3), f(5)], tag="bias")
case("BiasGelu", [f(2, 5, lo=-3, hi=3), f(5)])
case("QuickGelu", [f(2, 5, lo=-3, hi=3)])
case("QuickGelu", [f(2, 5, lo=-3, hi=3)], tag="alpha", alpha=1.0)
case("SkipLayerNormalization", [f(2, 3, 8), f(2, 3, 8), f(8), f(8), f(8)], outs=4, skip=(1, 2))
case("SkipLayerNormalization", [f(2, 3, 8), f(2, 3, 8), f(8), f(8)], tag="eps", epsilon=0.01)
case("SkipSimplifiedLayerNormalization", [f(2, 3, 8), f(2, 3, 8), f(8)], outs=4, skip=(1, 2), epsilon=1e-5)
case("SkipSimplifiedLayerNormalization", [f(2, 3, 8), f(2, 3, 8), f(8), f(8)], tag="bias", epsilon=1e-5)
case("SimplifiedLayerNormalization", [f(2, 3, 8), f(8)], domain="", epsilon=1e-5)
ids = np.array([[1, 2, 0, 3], [4, 0, 1, 1]], np.int32)
segs = np.array([[0, 0, 1, 1], [0, 1, 1, 1]], np.int32)
mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)
case("EmbedLayerNormalization", [ids, segs, f(6, 8), f(5, 8), f(2, 8), f(8), f(8), mask], outs=2, epsilon=1e-5)
case("EmbedLayerNormalization", [ids, None, f(6, 8), f(5, 8), None, f(8), f(8), None, np.array([[3, 2, 1, 0]], np.int32).repeat(2, 0)], outs=3, tag="positions", epsilon=1e-5)

x, w, b = f(2, 4, 6), f(6, 18), f(18)
case("Attention", [x, w, b], num_heads=2)
case("Attention", [x, w, b], tag="causal", num_heads=2, unidirectional=1)
case("Attention", [x, w, b, i32(4, 2)], tag="lengths", num_heads=2)
case("Attention", [x, w, b, mask], tag="mask", num_heads=3, scale=0.4)
case("Attention", [x, w, b, np.tril(np.ones((2, 4, 4), np.int32))], tag="mask3", num_heads=2)
case("Attention", [x, w, b, None, None, f(1, 2, 4, 4)], tag="bias", num_heads=2)
case("Attention", [x, w, b, None, f(2, 2, 2, 3, 3)], outs=2, tag="past", num_heads=2, unidirectional=1)
case("Attention", [x, f(6, 6 + 6 + 10), f(22)], tag="sizes", num_heads=2, qkv_hidden_sizes=[6, 6, 10])
q, k, v = f(2, 3, 8), f(2, 5, 8), f(2, 5, 8)
case("MultiHeadAttention", [q, k, v], num_heads=2)
case("MultiHeadAttention", [q, k, v, f(24)], tag="bias", num_heads=2, scale=0.3)
case("MultiHeadAttention", [q, k, v, None, np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)], tag="padding", num_heads=2)
case("MultiHeadAttention", [q, k, v, None, None, f(2, 2, 3, 5)], tag="scores", num_heads=2)
case("MultiHeadAttention", [q, f(2, 2, 5, 4), f(2, 2, 5, 4)], tag="heads", num_heads=2)
case("MultiHeadAttention", [q, f(2, 3, 8), f(2, 3, 8), None, None, None, f(2, 2, 4, 4), f(2, 2, 4, 4)], outs=3, tag="past", num_heads=2)
case("MultiHeadAttention", [q, f(2, 3, 8), f(2, 3, 8)], tag="causal", num_heads=2, unidirectional=1)
gq, gk, gv = f(2, 4, 32), f(2, 4, 16), f(2, 4, 16)
lens, total = i32(3, 3), Const(i32(4).reshape(()))
case("GroupQueryAttention", [gq, gk, gv, None, None, lens, total], outs=3, num_heads=4, kv_num_heads=2)
case("GroupQueryAttention", [f(2, 4, 64), None, None, None, None, lens, total], tag="packed", outs=3, num_heads=4, kv_num_heads=2)
case("GroupQueryAttention", [gq, gk, gv, None, None, lens, total], tag="window", outs=3, num_heads=4, kv_num_heads=2, local_window_size=2)
case("GroupQueryAttention", [gq, gk, gv, None, None, lens, total], tag="softcap", outs=3, num_heads=4, kv_num_heads=2, softcap=0.5)
gq, gk, gv = f(2, 4, 64), f(2, 4, 32), f(2, 4, 32)
angle = np.outer(np.arange(16), 1 / 100 ** (np.arange(8) / 8))
cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
case("GroupQueryAttention", [gq, gk, gv, None, None, lens, total, cos, sin], tag="rotary", outs=3, num_heads=4, kv_num_heads=2, do_rotary=1)
case("GroupQueryAttention", [gq, gk, gv, None, None, lens, total, cos, sin], tag="interleaved", outs=3, num_heads=4, kv_num_heads=2, do_rotary=1, rotary_interleaved=1)
case("GroupQueryAttention", [f(2, 1, 64), f(2, 1, 32), f(2, 1, 32), f(2, 2, 3, 16), f(2, 2, 3, 16), lens, total, cos, sin], tag="cache", outs=3, num_heads=4, kv_num_heads=2, do_rotary=1)
pos = np.array([[0, 1, 2], [4, 5, 6]], np.int64)
case("RotaryEmbedding", [f(2, 3, 32), pos, cos, sin])
case("RotaryEmbedding", [f(2, 2, 3, 16), pos, cos, sin], tag="heads", interleaved=1)
case("RotaryEmbedding", [f(2, 3, 32), np.array([2], np.int64), cos, sin], tag="offset", num_heads=2)

s, z = lambda x: np.array(x, np.float32), lambda x: np.array(x, np.uint8)
a, b8 = u8(2, 3), u8(2, 3)
case("QLinearAdd", [a, s(0.02), z(128), b8, s(0.03), z(120), s(0.0413), z(127)])
case("QLinearMul", [a, s(0.02), z(128), b8, s(0.03), z(120), s(0.04), z(127)])
case("QLinearSigmoid", [a, Const(np.array(0.02, np.float32)), Const(np.array(128, np.uint8)), Const(np.array(1 / 255, np.float32)), Const(np.array(0, np.uint8))])
case("QLinearLeakyRelu", [a, Const(np.array(0.02, np.float32)), Const(np.array(128, np.uint8)), Const(np.array(0.02, np.float32)), Const(np.array(100, np.uint8))], alpha=0.1)
case("QLinearGlobalAveragePool", [u8(1, 2, 3, 3), s(0.02), z(128), s(0.01), z(100)])
case("QLinearConcat", [s(0.04), z(127), a, s(0.02), z(128), b8, s(0.03), z(120)], axis=1)
case("DynamicQuantizeMatMul", [f(2, 4), u8(4, 3), s(0.02), z(120), f(3)])
case("MatMulIntegerToFloat", [u8(2, 4), u8(4, 3), s(0.02), s(0.03), z(128), z(120), f(3)])
case("MatMulIntegerToFloat", [u8(2, 4), u8(4, 3), s(0.02), f(3, lo=0.01, hi=0.05), z(128), u8(3)], tag="columns")

out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "msft.json")
with open(out, "w") as fh:
    fh.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
print(len(cases), "cases,", os.path.getsize(out), "bytes")
