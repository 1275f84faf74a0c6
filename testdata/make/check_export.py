"""Trained models that aitk has exported, opened in ONNX Runtime: every output against aitk's own.

    pip install numpy safetensors onnxruntime        # checked with onnxruntime 1.32.0
    mkdir /tmp/exported && go test ./internal/e2e -run TestExportedModels -timeout 30m -args -export-out /tmp/exported
    python3 testdata/make/check_export.py /tmp/exported

The test trains every file of every golden model for some steps, exports it, and leaves inputs and outputs of one batch beside it. Both sides compute in
float32 and add products in another order, and ONNX Runtime fuses what aitk keeps apart: each layer may differ by a few roundings (6e-8 of its largest
number), and some twenty layers deep an output by 1e-5 of its own largest number. A wrong weight, or one in the wrong place, is off by 1e-2 and more. Exit
status 1 if an output is further away, has another shape, or is the same before and after one weight is changed.
"""
import glob
import os
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper
from safetensors.numpy import load_file

TOLERANCE = 1e-5
folder = sys.argv[1]
failed, worst = 0, 0.0
models = sorted(glob.glob(os.path.join(folder, "*.onnx")))


def run(model, batch):
    quiet = ort.SessionOptions()
    quiet.log_severity_level = 3
    engine = ort.InferenceSession(model, quiet, providers=["CPUExecutionProvider"])
    feed = {i.name: batch["input." + i.name] for i in engine.get_inputs()}
    names = [o.name for o in engine.get_outputs() if "output." + o.name in batch]
    return dict(zip(names, engine.run(names, feed)))


def apart(a, b):
    return float(np.abs(a.astype(np.float64) - b).max() / max(np.abs(b).max(), 1e-30))


for path in models:
    batch = load_file(path[: -len(".onnx")] + ".safetensors")
    wanted = {k[len("output."):]: v for k, v in batch.items() if k.startswith("output.")}
    got = run(path, batch)
    bad = [n for n in wanted if n not in got or got[n].shape != wanted[n].shape or not apart(got[n], wanted[n]) <= TOLERANCE]
    d = max((apart(got[n], wanted[n]) for n in wanted if n in got and got[n].shape == wanted[n].shape), default=0.0)
    worst = max(worst, d)
    # The comparison means something: with its largest weight turned round the output is another one.
    m = onnx.load(path)
    weight = max((t for t in m.graph.initializer if t.data_type == onnx.TensorProto.FLOAT and len(t.dims) > 1), key=lambda t: int(np.prod(t.dims)))
    weight.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(numpy_helper.to_array(weight)[::-1]), weight.name))
    other = run(m.SerializeToString(), batch)
    blind = all(apart(other[n], wanted[n]) <= 100 * TOLERANCE for n in wanted if n in other)
    failed += bool(bad) or blind
    print(f"{os.path.basename(path):38} outputs {len(wanted)}  apart {d:.1e}", "DIFFERENT " + ", ".join(bad) if bad else "", "BLIND" if blind else "")
print(f"{len(models)} models, {failed} failed, worst {worst:.1e} of the largest number, allowed {TOLERANCE:.0e}")
sys.exit(failed > 0 or not models)
