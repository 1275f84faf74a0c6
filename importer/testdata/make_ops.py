"""Makes ops.json: tiny models, one op each, with inputs and the outputs that the ONNX project's reference evaluator gives for them.

    pip install onnx numpy
    python make_ops.py

Every meaning that changed with an opset has a case on either side of the change. Inputs come from a fixed seed.
"""
import base64
import json
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

rng = np.random.default_rng(7)
cases = []


def f(*shape, lo=-2.0, hi=2.0):
    return rng.uniform(lo, hi, shape).astype(np.float32)


def i64(*xs, shape=None):
    a = np.array(xs, np.int64)
    return a.reshape(shape) if shape is not None else a


def case(op, opset, inputs, consts=None, outs=1, tag="", want=None, **attrs):
    """inputs and consts: lists with None for an operand of the other kind, "" for one left out."""
    consts = consts or []
    n = max(len(inputs), len(consts))
    names, feeds, inits, infos = [], {}, [], []
    for k in range(n):
        x = inputs[k] if k < len(inputs) else None
        c = consts[k] if k < len(consts) else None
        if x is not None and not isinstance(x, str):
            names.append(f"x{k}")
            feeds[f"x{k}"] = x
            infos.append(helper.make_tensor_value_info(f"x{k}", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape))
        elif c is not None:
            names.append(f"c{k}")
            inits.append(numpy_helper.from_array(c, f"c{k}"))
        else:
            names.append("")
    ys = [f"y{k}" for k in range(outs)]
    node = helper.make_node(op, names, ys, name="n", **attrs)
    graph = helper.make_graph([node], "g", infos, [helper.make_value_info(y, helper.make_tensor_type_proto(TensorProto.FLOAT, None)) for y in ys], inits)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, producer_name="make_ops")
    if want is None:
        want = ReferenceEvaluator(model).run(None, feeds)
    add(f"{op}-{opset}{'-' + tag if tag else ''}", model, feeds, want, ys)


def add(name, model, feeds, want, ys):
    cases.append({
        "name": name,
        "model": base64.b64encode(model.SerializeToString()).decode(),
        "inputs": {k: dump(v) for k, v in feeds.items()},
        "outputs": {y: dump(np.asarray(v)) for y, v in zip(ys, want)},
    })


def dump(a):
    kind = {"float32": "f32", "float64": "f64", "int64": "i64", "int32": "i32", "bool": "bool", "uint8": "u8", "int8": "i8", "float16": "f16"}[str(a.dtype)]
    flat = [str(x) if not np.isfinite(x) else (round(float(x), 7) if a.dtype.kind == "f" else int(x)) for x in a.ravel().tolist()]
    return {"dtype": kind, "shape": list(a.shape), "data": flat}


# element-wise
for op in ["Neg", "Abs", "Sign", "Floor", "Ceil", "Round", "Exp", "Reciprocal", "Sin", "Cos", "Tan", "Tanh", "Erf", "Sigmoid", "Relu",
           "Softplus", "Softsign", "LeakyRelu", "Elu", "Selu", "HardSigmoid", "ThresholdedRelu", "Identity"]:
    case(op, 13, [f(2, 3)])
for op in ["Sqrt", "Log"]:
    case(op, 13, [f(2, 3, lo=0.1)])
case("Elu", 13, [f(4)], tag="alpha", alpha=0.3)
case("LeakyRelu", 16, [f(4)], tag="alpha", alpha=0.3)
case("Celu", 12, [f(5)], alpha=0.7)
case("HardSigmoid", 22, [f(6, lo=-4, hi=4)], tag="attrs", alpha=0.4, beta=0.3)
case("HardSwish", 14, [f(6, lo=-4, hi=4)])
case("Mish", 18, [f(6, lo=-4, hi=4)])
case("Gelu", 20, [f(6, lo=-4, hi=4)])
case("Gelu", 20, [f(6, lo=-4, hi=4)], tag="tanh", approximate="tanh")
case("PRelu", 16, [f(2, 3, 4), f(3, 1)])
x = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
case("IsNaN", 13, [x])
case("IsInf", 10, [x])
case("IsInf", 20, [x], tag="positive", detect_negative=0)
case("IsInf", 20, [x], tag="negative", detect_positive=0)
for op in ["Add", "Sub", "Mul", "Div", "Equal", "Less", "Greater"]:
    case(op, 7 if op != "Equal" else 11, [f(2, 3), f(3)])
case("LessOrEqual", 12, [f(2, 3), f(3)])
case("GreaterOrEqual", 16, [f(2, 3), f(2, 1)])
case("Div", 14, [i64(7, -7, 8), i64(2, 2, 3)], tag="int", want=[i64(3, -3, 2)])
b1, b2 = np.array([1, 1, 0, 0], bool), np.array([1, 0, 1, 0], bool)
for op in ["And", "Or", "Xor"]:
    case(op, 7, [b1, b2])
case("Not", 1 + 6, [b1])
case("Pow", 7, [f(4, lo=0.5), f(1)])
case("Pow", 15, [f(4), i64(2)], tag="mixed")
case("Pow", 15, [i64(2, 3, 5), np.float32([2])], tag="int-base")
case("Mod", 13, [i64(-7, 7, 5), i64(3, -3, 2)])
case("Mod", 13, [f(3), f(3)], fmod=1, tag="fmod")
for op in ["Max", "Min", "Sum", "Mean"]:
    case(op, 8, [f(2, 3), f(3), f(1)])
case("Where", 9, [np.array([[1], [0]], bool), f(2, 3), f(3)])
case("Where", 16, [b1, f(4), f(1)])
case("Clip", 7, [f(5)], min=-0.5, max=0.7)
case("Clip", 11, [f(5)], [None, np.float32(-0.5), np.float32(0.7)])
case("Clip", 13, [f(5)], [None, None, np.float32(0.7)], tag="max-only")
case("Clip", 13, [f(5)], [None, np.float32(0.1)], tag="min-only")
case("Clip", 13, [f(5), np.float32(-0.3), np.float32(0.3)], tag="dynamic")
case("Cast", 9, [f(4)], to=TensorProto.INT64)
case("Cast", 13, [b1], tag="bool", to=TensorProto.FLOAT)
case("Cast", 19, [f(4)], tag="saturate", to=TensorProto.FLOAT16, saturate=1)
case("CastLike", 15, [f(4), i64(1)])

# shape
case("Shape", 13, [f(2, 3, 4)])
case("Shape", 15, [f(2, 3, 4)], tag="range", start=-2, end=3)
case("Size", 13, [f(2, 3)])
case("Reshape", 7, [f(2, 3, 4)], [None, i64(0, -1)], tag="zero")
case("Reshape", 14, [f(0, 3)], [None, i64(3, 0)], tag="allowzero", allowzero=1)
case("Flatten", 9, [f(2, 3, 4)], axis=2)
case("Flatten", 11, [f(2, 3, 4)], tag="negative", axis=-1)
case("Flatten", 13, [f(2, 3)], tag="all", axis=0)
case("Squeeze", 11, [f(1, 3, 1)], axes=[0])
case("Squeeze", 13, [f(1, 3, 1)], [None, i64(-1)])
case("Squeeze", 13, [f(1, 3, 1)], tag="all")
case("Unsqueeze", 11, [f(2, 3)], axes=[0, 3])
case("Unsqueeze", 13, [f(2, 3)], [None, i64(-1, 1)])
case("Transpose", 13, [f(2, 3, 4)])
case("Transpose", 21, [f(2, 3, 4)], tag="perm", perm=[1, 0, 2])
case("Expand", 8, [f(3, 1)], [None, i64(2, 1, 4)])
case("Expand", 13, [f(3, 4)], [None, i64(1, 1)], tag="smaller")
case("Tile", 6 + 1, [f(2, 3)], [None, i64(2, 3)])
case("Concat", 11, [f(2, 3), f(2, 1)], axis=-1)
case("Split", 7, [f(6)], outs=2, axis=0, split=[2, 4])
case("Split", 11, [f(4, 2)], outs=2, tag="equal")
case("Split", 13, [f(6)], [None, i64(1, 5)], outs=2, axis=-1)
case("Split", 18, [f(7)], outs=3, tag="short-last", num_outputs=3)
case("Slice", 7, [f(4, 5)], starts=[1, 0], ends=[1000, -1], axes=[0, 1])
case("Slice", 10, [f(6)], [None, i64(-1), i64(-1000), i64(0), i64(-2)], tag="backwards")
case("Slice", 13, [f(4, 5)], [None, i64(3), i64(1), i64(1)], tag="empty")
case("Slice", 13, [f(4, 5)], [None, i64(-3, 0), i64(np.iinfo(np.int64).max, 4), None, i64(1, 3)], tag="clamped")
case("Pad", 11, [f(2, 3)], [None, i64(0, 1, 1, 2), np.float32(0.5)])
x = f(3, 3)
case("Pad", 13, [x], [None, i64(-1, 1, 0, 0)], tag="crop", want=[np.pad(x[1:], ((0, 0), (1, 0)))])
case("Pad", 18, [f(2, 3)], [None, i64(1, 2), None, i64(1)], tag="axes")
case("Pad", 13, [f(2, 4)], [None, i64(1, 2, 0, 3)], tag="reflect", mode="reflect")
case("Pad", 13, [f(2, 4)], [None, i64(1, 2, 0, 3)], tag="edge", mode="edge")
case("Pad", 19, [f(2, 4)], [None, i64(1, 2, 0, 3)], tag="wrap", mode="wrap")
case("Trilu", 14, [f(3, 4)], [None, np.array(1, np.int64)], upper=1)
case("Trilu", 14, [f(3, 4)], tag="lower", upper=0)
case("DepthToSpace", 11, [f(1, 8, 2, 3)], blocksize=2)
case("DepthToSpace", 13, [f(1, 8, 2, 3)], tag="CRD", blocksize=2, mode="CRD")
case("SpaceToDepth", 13, [f(1, 2, 4, 6)], blocksize=2)

# constants
case("ConstantOfShape", 9, [], [i64(2, 3)], value=helper.make_tensor("v", TensorProto.INT64, [1], [7]))
case("ConstantOfShape", 20, [], [i64(2)], tag="default")
case("Range", 11, [], [np.float32(1), np.float32(3), np.float32(0.5)])
case("Range", 11, [], [np.array(5, np.int64), np.array(0, np.int64), np.array(-2, np.int64)], tag="down")
case("Constant", 12, [], tag="floats", value_floats=[1.0, 2.5])
case("Constant", 13, [], tag="ints", value_ints=[1, -2])
case("Constant", 13, [], tag="int", value_int=5)
case("Constant", 13, [], tag="tensor", value=helper.make_tensor("v", TensorProto.BOOL, [3], [1, 0, 1]))

# indexing
case("Gather", 11, [f(4, 3), i64(0, -1, 2, 1, shape=(2, 2))])
case("Gather", 13, [f(4, 3)], [None, np.array(-2, np.int64)], tag="scalar", axis=1)
case("GatherElements", 11, [f(3, 3), i64(0, 1, 2, 2, 0, 1, shape=(2, 3))], axis=0)
case("GatherND", 12, [f(2, 3, 4), i64(0, 1, 1, 2, shape=(2, 2))])
case("GatherND", 13, [f(2, 3, 4), i64(1, 2, shape=(2, 1))], tag="batch", batch_dims=1)
case("ScatterElements", 13, [f(3, 3), i64(1, 0, 2, shape=(1, 3)), f(1, 3)])
case("ScatterElements", 16, [f(3, 3), i64(1, 1, 1, shape=(1, 3)), f(1, 3)], tag="add", reduction="add", axis=1)
case("ScatterND", 16, [f(4, 2), i64(0, 3, shape=(2, 1)), f(2, 2)])
case("OneHot", 11, [i64(0, -1, 2)], [None, np.array(3, np.int64), np.float32([0.5, 2])])
case("OneHot", 11, [i64(0, 5, 2)], [None, np.array(3, np.int64), np.float32([0, 1])], tag="axis0", axis=0, want=[np.float32([[1, 0, 0], [0, 0, 0], [0, 0, 1]])])
case("ArgMax", 13, [np.float32([[1, 3, 3], [5, 2, 5]])], axis=1)
case("ArgMax", 13, [np.float32([[1, 3, 3], [5, 2, 5]])], tag="last", axis=-1, keepdims=0, select_last_index=1)
case("ArgMin", 13, [np.float32([[1, 3, 1], [5, 2, 5]])], axis=0)

# reductions and scans
for op in ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"]:
    case(op, 11, [f(2, 3, 4)], axes=[-1, 0])
    case(op, 18, [f(2, 3, 4)], [None, i64(1)], keepdims=0)
case("ReduceLogSum", 18, [f(2, 3, lo=0.1)], [None, i64(1)])
case("ReduceSum", 13, [f(2, 3)], [None, i64(0)])
case("ReduceSum", 13, [f(2, 3)], tag="all")
case("ReduceSum", 13, [f(2, 3)], tag="noop", noop_with_empty_axes=1)
case("ReduceMean", 18, [f(2, 3)], [None, np.zeros(0, np.int64)], tag="empty-axes")
case("CumSum", 11, [f(2, 4)], [None, np.array(1, np.int64)])
case("CumSum", 14, [f(2, 4)], [None, np.array(-2, np.int64)], tag="both", exclusive=1, reverse=1)
def old_softmax(x, axis):
    r = x.reshape(int(np.prod(x.shape[:axis])), -1)
    e = np.exp(r - r.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True)).reshape(x.shape)
for op, fn in [("Softmax", lambda y: y), ("LogSoftmax", np.log)]:
    x = f(2, 3, 4)
    case(op, 11, [x], tag="rows", want=[fn(old_softmax(x, 1))])
    case(op, 11, [x], tag="axis2", axis=2, want=[fn(old_softmax(x, 2))])
    case(op, 13, [x])
    case(op, 13, [x], tag="axis", axis=1)
t = i64(0, 2, 1)
for red in ["mean", "sum", "none"]:
    case("SoftmaxCrossEntropyLoss", 13, [f(3, 4), t], tag=red, reduction=red)
    case("SoftmaxCrossEntropyLoss", 12, [f(3, 4), t, f(4, lo=0.1)], tag=red + "-weights", reduction=red)
    case("SoftmaxCrossEntropyLoss", 13, [f(3, 4, 2), i64(0, 2, 1, 3, 3, 0, shape=(3, 2))], tag=red + "-ignore", reduction=red, ignore_index=3)
    case("NegativeLogLikelihoodLoss", 13, [f(3, 4), t, f(4, lo=0.1)], tag=red, reduction=red, ignore_index=2)
case("SoftmaxCrossEntropyLoss", 13, [f(3, 4), t], outs=2, tag="log")

# layers
case("MatMul", 9, [f(2, 3, 4), f(4, 5)])
case("MatMul", 13, [f(4), f(2, 4, 5)], tag="row")
case("MatMul", 13, [f(2, 3, 4), f(4)], tag="column")
case("MatMul", 13, [f(4), f(4)], tag="dot")
case("Gemm", 7, [f(2, 3), f(4, 3), f(4)], transB=1)
case("Gemm", 9, [f(3, 2), f(3, 4), f(2, 1)], tag="all", transA=1, alpha=0.5, beta=2.0)
case("Gemm", 11, [f(2, 3), f(3, 4)], tag="noC")
case("Conv", 11, [f(1, 2, 5, 5), f(3, 2, 3, 3), f(3)], pads=[1, 0, 1, 2], strides=[2, 1])
case("Conv", 11, [f(1, 4, 6), f(4, 2, 3)], tag="1d", group=2, dilations=[2])
case("Conv", 22, [f(1, 1, 5, 5), f(1, 1, 2, 2)], tag="upper", auto_pad="SAME_UPPER", strides=[2, 2])
case("Conv", 11, [f(1, 1, 5, 5), f(1, 1, 2, 2)], tag="lower", auto_pad="SAME_LOWER")
case("Conv", 11, [f(1, 1, 5, 5), f(1, 1, 2, 2)], tag="valid", auto_pad="VALID")
case("ConvTranspose", 11, [f(1, 2, 3, 3), f(2, 3, 3, 3), f(3)], strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1])
case("ConvTranspose", 11, [f(1, 2, 4), f(2, 1, 3)], tag="dilated", dilations=[2])
case("MaxPool", 8, [f(1, 2, 6, 6)], kernel_shape=[2, 2], strides=[2, 2])
case("MaxPool", 12, [f(1, 1, 5, 5)], tag="ceil", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
case("MaxPool", 12, [f(1, 1, 6, 6)], tag="dilated", kernel_shape=[2, 2], dilations=[2, 2], pads=[1, 0, 0, 1])
case("AveragePool", 7, [f(1, 1, 5, 5)], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
case("AveragePool", 11, [f(1, 1, 5, 5)], tag="count", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], count_include_pad=1)
case("AveragePool", 19, [f(1, 1, 6, 6)], tag="dilated", kernel_shape=[2, 2], dilations=[2, 2])
case("AveragePool", 19, [f(1, 1, 4, 4)], tag="ceil", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
case("AveragePool", 19, [x], tag="ceil-count", kernel_shape=[3, 3], strides=[3, 3], pads=[1, 1, 1, 1], ceil_mode=1, count_include_pad=1,
     want=[np.float32([[[[14 / 9, (3 + 4 + 7 + 8) / 9], [(9 + 10 + 13 + 14) / 9, (11 + 12 + 15 + 16) / 9]]]])])
case("GlobalAveragePool", 7, [f(2, 3, 2, 2)])
x = f(2, 3, 4)
case("GlobalMaxPool", 7, [x], want=[x.max(2, keepdims=True)])
x, s, b, m, v = f(2, 3, 4), f(3), f(3), f(3), f(3, lo=0.2)
case("BatchNormalization", 9, [x, s, b], [None, None, None, m, v], want=[(x - m[:, None]) / np.sqrt(v + 1e-5)[:, None] * s[:, None] + b[:, None]])
case("BatchNormalization", 15, [f(2, 3), f(3), f(3)], [None, None, None, f(3), f(3, lo=0.2)], epsilon=0.1, tag="eps")
case("BatchNormalization", 14, [f(4, 3, 2), f(3), f(3)], [None, None, None, f(3), f(3, lo=0.2)], outs=3, tag="training", training_mode=1, momentum=0.8)
case("LayerNormalization", 17, [f(2, 3, 4), f(4), f(4)])
case("LayerNormalization", 17, [f(2, 3, 4), f(3, 4)], outs=3, tag="stats", axis=1, epsilon=0.01)
case("RMSNormalization", 23, [f(2, 3, 4), f(4)], axis=-1)
case("InstanceNormalization", 7, [f(2, 3, 4), f(3), f(3)])
case("GroupNormalization", 21, [f(2, 4, 3), f(4), f(4)], num_groups=2)
x, s, b = f(2, 4, 3), f(2), f(2)
g = x.reshape(2, 2, 6)
g = (g - g.mean(2, keepdims=True)) / np.sqrt(g.var(2, keepdims=True) + 1e-5) * s[None, :, None] + b[None, :, None]
case("GroupNormalization", 18, [x, s, b], num_groups=2, want=[g.reshape(2, 4, 3).astype(np.float32)])
case("Dropout", 7, [f(4)], ratio=0.5)
case("Dropout", 13, [f(4)], [None, np.float32(0.5)], outs=2, tag="mask")
case("Resize", 11, [f(1, 1, 2, 3)], [None, np.zeros(0, np.float32), np.float32([1, 1, 2, 2])], tag="nearest", mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
case("Resize", 13, [f(1, 1, 4, 3)], [None, None, None, i64(1, 1, 3, 5)], tag="sizes", mode="nearest")
x = f(1, 1, 2, 2)
case("Resize", 10, [x], [None, np.float32([1, 1, 2, 3])], mode="nearest", want=[x.repeat(2, 2).repeat(3, 3)])
case("Upsample", 9, [x], [None, np.float32([1, 1, 2, 3])], mode="nearest", want=[x.repeat(2, 2).repeat(3, 3)])
case("Upsample", 7, [x], tag="attr", mode="nearest", scales=[1.0, 1.0, 2.0, 3.0], want=[x.repeat(2, 2).repeat(3, 3)])
x = f(2, 3)
case("Pad", 7, [x], tag="attr", pads=[0, 1, 1, 2], value=0.5, want=[np.pad(x, ((0, 1), (1, 2)), constant_values=0.5)])
x = f(6, lo=-4, hi=4)
case("Swish", 24, [x], alpha=1.5, want=[x / (1 + np.exp(-1.5 * x))])


# sequences
def seq(name, nodes, x, want, consts):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
                              [helper.make_value_info("y", helper.make_tensor_type_proto(TensorProto.FLOAT, None))],
                              [numpy_helper.from_array(v, k) for k, v in consts.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    add(name, model, {"x": x}, [want], ["y"])


x = f(2, 5)
at = {"i": np.array(-1, np.int64), "two": np.array(2, np.int64), "parts": i64(1, 4)}
seq("SplitToSequence-size", [helper.make_node("SplitToSequence", ["x", "two"], ["s"], axis=1), helper.make_node("SequenceAt", ["s", "i"], ["y"])], x, x[:, 4:], at)
seq("SplitToSequence-parts", [helper.make_node("SplitToSequence", ["x", "parts"], ["s"], axis=1), helper.make_node("SequenceAt", ["s", "i"], ["y"])], x, x[:, 1:], at)
seq("SplitToSequence-ones", [helper.make_node("SplitToSequence", ["x"], ["s"], axis=0, keepdims=0), helper.make_node("SequenceAt", ["s", "i"], ["y"])], x, x[1], at)
seq("ConcatFromSequence", [helper.make_node("SequenceConstruct", ["x", "x"], ["s"]), helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0, new_axis=1)], x, np.stack([x, x]), at)

out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ops.json")
with open(out, "w") as fh:
    fh.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
print(len(cases), "cases,", os.path.getsize(out), "bytes")
