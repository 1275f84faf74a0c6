"""What optimizers make of the golden models' recommended exports, for the linter's test: metadata gone, weights renamed, ops of ONNX Runtime's own. Adds to
expect.json.

    pip install onnx onnxruntime onnxslim                                    # written with 1.23.2, 1.32.0, 0.1.98
    python3 testdata/make/lint_optimized.py ../shared/models/small testdata/onnx/lint      # after lint_more.py
"""
import json, os, sys
import onnx
import onnxruntime as ort
import onnxslim

small, out = sys.argv[1:3]
path = lambda name: os.path.join(out, name + ".onnx")

o = ort.SessionOptions()
o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
o.optimized_model_filepath = path("ort_fused")
ort.InferenceSession(os.path.join(small, "mlp_digits", "model.onnx"), o, providers=["CPUExecutionProvider"])
onnx.save(onnxslim.slim(os.path.join(small, "unet_seg", "model.onnx")), path("slim_folded_bn"))

expect = json.load(open(os.path.join(out, "expect.json")))
expect["ort_fused"] = {"must": [], "only": []}  # FusedGemm takes weights like Gemm
expect["slim_folded_bn"] = {"must": ["folded-batch-norm"], "only": []}
json.dump(expect, open(os.path.join(out, "expect.json"), "w"), indent=1)
