"""Files for the linter's test that other tools make, and expect.json for all of them: what a linter must say of each file (must), and
where given the only other things that it may say (only).

    pip install onnx onnxruntime onnxsim onnxslim scikit-learn skl2onnx      # written with 1.23.2, 1.32.0, 0.8.1, 0.1.98, 1.9.1, 1.20.0
    python3 testdata/make/lint_more.py testdata/onnx/lint                    # after lint_torch.py
"""
import json, os, sys
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

out = sys.argv[1]
rng = np.random.default_rng(0)
path = lambda name: os.path.join(out, name + ".onnx")
load = lambda name: onnx.load(path(name))


def save(name, m):
    onnx.save(m, path(name))


def weights(shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype) * dtype(0.3)


def graph(name, nodes, inputs, outputs, init, opset=17, ir=8):
    g = h.make_graph(nodes, name, [h.make_tensor_value_info(n, t, s) for n, t, s in inputs],
                     [h.make_tensor_value_info(n, t, s) for n, t, s in outputs], [nh.from_array(a, n) for n, a in init.items()])
    save(name, h.make_model(g, opset_imports=[h.make_opsetid("", opset)], ir_version=ir))


# ONNX Runtime's optimizer folds batch norm and fuses what follows; its quantizers make integers.
import onnxruntime as ort
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

o = ort.SessionOptions()
o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
o.optimized_model_filepath = path("ort_basic")
ort.InferenceSession(path("ts_inference_bn"), o, providers=["CPUExecutionProvider"])
quantize_dynamic(path("ts_clean"), path("ort_dynamic"), weight_type=QuantType.QInt8)


class Reader(CalibrationDataReader):
    def __init__(self):
        self.data = iter([{"x": rng.standard_normal((2, 8)).astype(np.float32)} for _ in range(4)])

    def get_next(self):
        return next(self.data, None)


quantize_static(path("ts_clean"), path("ort_qdq"), Reader(), quant_format=QuantFormat.QDQ)

# Simplifiers.
import onnxsim, onnxslim

simplified, ok = onnxsim.simplify(load("ts_inference_bn"))
assert ok
save("onnxsim", simplified)
save("onnxslim", onnxslim.slim(load("ts_inference_bn")))

# scikit-learn ends in the index of the class.
from skl2onnx import to_onnx
from sklearn.neural_network import MLPClassifier

X = rng.standard_normal((40, 4)).astype(np.float32)
mlp = MLPClassifier((5,), max_iter=20).fit(X, (X[:, 0] > 0).astype(np.int64))
save("sklearn", to_onnx(mlp, X[:1], options={"zipmap": False}, target_opset=15))

# PaddlePaddle keeps all weights in Constant nodes.
m = load("ts_clean")
nodes = [h.make_node("Constant", [], [i.name], name="Constant_" + i.name, value=i) for i in m.graph.initializer]
kept = list(m.graph.node)
del m.graph.node[:], m.graph.initializer[:]
m.graph.node.extend(nodes + kept)
m.producer_name = "paddle"
save("constants", m)

# A tool that merges equal initializers: two norms of a fresh model become one.
ln = lambda x, y, w, b: h.make_node("LayerNormalization", [x, w, b], [y], name="/" + y, axis=-1)
graph("merged", [ln("x", "a", "norm1.weight", "norm1.bias"), h.make_node("MatMul", ["a", "fc.weight"], ["m"], name="/fc/MatMul"),
                 ln("m", "y", "norm1.weight", "norm1.bias")],
      [("x", T.FLOAT, ["batch", 8])], [("y", T.FLOAT, ["batch", 8])],
      {"norm1.weight": np.ones(8, np.float32), "norm1.bias": np.zeros(8, np.float32), "fc.weight": weights((8, 8))})

# Half precision with a mask that only float32 can hold.
graph("half_mask", [h.make_node("MatMul", ["x", "w"], ["s"], name="scores"), h.make_node("Cast", ["hide"], ["f"], name="cast", to=T.FLOAT),
                    h.make_node("Mul", ["f", "big"], ["m32"], name="mask"), h.make_node("Cast", ["m32"], ["m"], name="narrow", to=T.FLOAT16),
                    h.make_node("Add", ["s", "m"], ["y"], name="add")],
      [("x", T.FLOAT16, ["batch", 4]), ("hide", T.BOOL, ["batch", 4])], [("y", T.FLOAT16, ["batch", 4])],
      {"w": weights((4, 4), np.float16), "big": np.float32([-1e9])})

# Training mode, and nobody to hand the statistics to.
m = load("ts_training_bn")
bn = next(n for n in m.graph.node if n.op_type == "BatchNormalization")
del bn.output[1:]
save("stale", m)

# Old, broken, unknown.
m = load("ts_clean")
m.opset_import[0].version = 5
save("opset5", m)
graph("cycle", [h.make_node("Add", ["x", "b"], ["a"], name="first"), h.make_node("Relu", ["a"], ["b"], name="second")],
      [("x", T.FLOAT, ["batch", 4])], [("b", T.FLOAT, ["batch", 4])], {})
graph("unknown", [h.make_node("MatMul", ["x", "w"], ["h"], name="fc"), h.make_node("Frobnicate", ["h"], ["y"], name="odd", domain="example")],
      [("x", T.FLOAT, ["batch", 4])], [("y", T.FLOAT, ["batch", 4])], {"w": weights((4, 4))})
open(path("truncated"), "wb").write(open(path("ts_clean"), "rb").read()[:-40])

# A weight of which a step without slope cuts off one branch only.
graph("half_cut", [h.make_node("MatMul", ["x", "alive.weight"], ["a"], name="/alive/MatMul"), h.make_node("MatMul", ["x", "cut.weight"], ["c"], name="/cut/MatMul"),
                   h.make_node("Sign", ["c"], ["s"], name="/Sign"), h.make_node("Add", ["a", "s"], ["y"], name="/Add")],
      [("x", T.FLOAT, ["batch", 4])], [("y", T.FLOAT, ["batch", 4])], {"alive.weight": weights((4, 4)), "cut.weight": weights((4, 4))})

clean = {"must": [], "only": []}
expect = {
    "ts_clean": clean, "ts_kept_tie": clean, "ts_double": clean, "ts_training_bn": clean,
    "ts_folded_bn": {"must": ["folded-batch-norm"], "only": ["renamed-parameter"]},
    "ts_inference_bn": {"must": ["inference-batch-norm"], "only": []},
    "ts_lost_tie": {"must": ["lost-tie", "renamed-parameter"], "only": []},
    "ts_dropout_old": {"must": ["dropout-removed", "old-opset"], "only": []},
    "ts_fixed_batch": {"must": ["fixed-batch"], "only": []},
    "ts_softmax": {"must": ["inference-only"], "only": []},
    "ts_argmax": {"must": ["inference-only"], "only": ["not-differentiable"], "fails": True},
    "ts_round": {"must": ["not-differentiable"], "only": [], "fails": True},
    "ts_cache": {"must": ["inference-only"], "only": []},
    "ts_false_ties": {"must": ["false-tie"], "only": ["renamed-parameter"]},
    "ort_basic": {"must": ["folded-batch-norm"], "only": ["renamed-parameter"]},
    "ort_dynamic": {"must": ["integer-weight"]},
    "ort_qdq": {"must": ["integer-weight"]},
    "onnxsim": {"must": ["folded-batch-norm"], "only": ["renamed-parameter"]},
    "onnxslim": {"must": ["folded-batch-norm"], "only": ["renamed-parameter"]},
    "sklearn": {"must": ["inference-only"]},
    "constants": {"must": ["hidden-weight"], "only": ["renamed-parameter"]},
    "merged": {"must": ["false-tie"], "only": []},
    "half_mask": {"must": ["mask-overflow", "low-precision-weights"], "only": []},
    "stale": {"must": ["stale-statistics"], "only": []},
    "opset5": {"must": ["old-opset"], "only": [], "fails": True},
    "cycle": {"must": ["invalid-graph"], "only": [], "fails": True},
    "unknown": {"must": ["unsupported-op"], "only": [], "fails": True},
    "truncated": {"must": ["invalid-graph"], "only": [], "fails": True},
    "half_cut": {"must": ["not-differentiable"], "only": []},
}
json.dump(expect, open(os.path.join(out, "expect.json"), "w"), indent=1)
