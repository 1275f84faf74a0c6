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

    init = [
        weight("conv1.weight", 16, 1, 3, 3), zeros("conv1.bias", 16),
        weight("conv2.weight", 32, 16, 3, 3), zeros("conv2.bias", 32),
        weight("conv3.weight", 32, 32, 3, 3), zeros("conv3.bias", 32),
        weight("fc1.weight", 64, 512), zeros("fc1.bias", 64),
        weight("fc2.weight", 10, 64), zeros("fc2.bias", 10),
    ]
    node = helper.make_node
    conv = dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    nodes = [
        node("Constant", [], ["scale"], "scale", value=numpy_helper.from_array(np.float32(1 / 16), "scale")),
        node("Mul", ["images", "scale"], ["x"], "normalise"),
        node("Conv", ["x", "conv1.weight", "conv1.bias"], ["c1"], "conv1", **conv),
        node("Relu", ["c1"], ["r1"], "relu1"),
        node("Conv", ["r1", "conv2.weight", "conv2.bias"], ["c2"], "conv2", **conv),
        node("Relu", ["c2"], ["r2"], "relu2"),
        node("Conv", ["r2", "conv3.weight", "conv3.bias"], ["c3"], "conv3", **conv),
        node("Relu", ["c3"], ["r3"], "relu3"),
        node("MaxPool", ["r3"], ["p3"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["p3"], ["f"], "flatten", axis=1),
        node("Gemm", ["f", "fc1.weight", "fc1.bias"], ["h"], "fc1", transB=1),
        node("Relu", ["h"], ["hr"], "relu4"),
        node("Gemm", ["hr", "fc2.weight", "fc2.bias"], ["logits"], "fc2", transB=1),
    ]
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
