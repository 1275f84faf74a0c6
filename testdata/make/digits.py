#!/usr/bin/env python3
"""Makes testdata/onnx/cnn_digits.onnx and testdata/data/digits.safetensors.

Usage: python3 testdata/make/digits.py DIGITS.safetensors

DIGITS.safetensors holds the 1,797 8x8 images of the UCI optical recognition of handwritten digits data set (CC BY 4.0, as bundled by
scikit-learn): images U8 [1797,8,8] with values 0..16 and labels U8 [1797]. The data file made from it follows aitk's naming: a tensor
per graph input, and target. Needs numpy, onnx, safetensors. The same input gives the same bytes.
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file, save_file

root = pathlib.Path(__file__).resolve().parent.parent


def data(source):
    t = load_file(source)
    save_file({"images": t["images"].reshape(-1, 1, 8, 8), "target": t["labels"]}, root / "data" / "digits.safetensors")


def model():
    rng = np.random.default_rng(7)

    def weight(name, *shape):
        fan_in = int(np.prod(shape[1:]))
        w = rng.normal(0, np.sqrt(2 / fan_in), shape).astype(np.float32)
        return numpy_helper.from_array(w, name)

    def zeros(name, n):
        return numpy_helper.from_array(np.zeros(n, np.float32), name)

    init, nodes = [], []

    def conv(name, x, channels_in, channels_out, gain=1.0):
        w = weight(name + ".weight", channels_out, channels_in, 3, 3)
        init.append(numpy_helper.from_array(numpy_helper.to_array(w) * np.float32(gain), name + ".weight"))
        init.append(zeros(name + ".bias", channels_out))
        nodes.append(helper.make_node("Conv", [x, name + ".weight", name + ".bias"], [name + ".out"], name, kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
        return name + ".out"

    def relu(x):
        nodes.append(helper.make_node("Relu", [x], [x + ".relu"], x.removesuffix(".out") + ".relu"))
        return x + ".relu"

    def block(name, x, channels):
        """x + conv(relu(conv(x))), the second convolution small at first so that the block begins near the identity."""
        y = conv(name + ".conv2", relu(conv(name + ".conv1", x, channels, channels)), channels, channels, 0.2)
        nodes.append(helper.make_node("Add", [x, y], [name + ".out"], name + ".add"))
        return relu(name + ".out")

    nodes.append(helper.make_node("Constant", [], ["scale"], "scale", value=numpy_helper.from_array(np.float32(1 / 16), "scale")))
    nodes.append(helper.make_node("Mul", ["images", "scale"], ["x"], "normalise"))
    x = relu(conv("stem", "x", 1, 16))
    for i in range(3):
        x = block(f"blocks.{i}", x, 16)
    nodes.append(helper.make_node("MaxPool", [x], ["pool.out"], "pool", kernel_shape=[2, 2], strides=[2, 2]))
    x = relu(conv("widen", "pool.out", 16, 32))
    x = block("blocks.3", x, 32)
    nodes.append(helper.make_node("Flatten", [x], ["flat"], "flatten", axis=1))
    init += [weight("head.weight", 10, 512), zeros("head.bias", 10)]
    nodes.append(helper.make_node("Gemm", ["flat", "head.weight", "head.bias"], ["logits"], "head", transB=1))
    graph = helper.make_graph(
        nodes, "cnn_digits",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10])], init)
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="aitk testdata")
    onnx.checker.check_model(m)
    (root / "onnx" / "cnn_digits.onnx").write_bytes(m.SerializeToString(deterministic=True))


if len(sys.argv) != 2:
    sys.exit(__doc__)
data(sys.argv[1])
model()
