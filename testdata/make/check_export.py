"""Exported models in ONNX Runtime: trains the small models of the collection for three steps, exports them as ONNX, and compares the loss that aitk
finds on all batches (four digits are printed) with the one from ONNX Runtime's outputs.

    pip install numpy safetensors onnxruntime        # checked with onnxruntime 1.32.0
    go build -o /tmp/aitk ./cmd/aitk && python3 testdata/make/check_export.py /tmp/aitk ../shared/models/small
"""
import json, os, re, subprocess, sys, tempfile
import numpy as np
import onnxruntime as ort
from safetensors.numpy import load_file

aitk, small = sys.argv[1:3]
failed = 0


def loss_of(spec, y, target):
    y = y.astype(np.float64)
    if spec["type"] == "cross_entropy":
        axis = spec.get("class_axis", 1 if y.ndim == 2 else -1)
        y = np.moveaxis(y, axis, -1)
        y = y - y.max(-1, keepdims=True)
        logp = y - np.log(np.exp(y).sum(-1, keepdims=True))
        return -np.take_along_axis(logp, target[..., None].astype(np.int64), -1).mean()
    if spec["type"] == "mse":
        return ((y - target) ** 2).mean()
    return (np.maximum(y, 0) - y * target + np.log1p(np.exp(-np.abs(y)))).mean()


for name in sorted(os.listdir(small)):
    for file in ("model.onnx", "model_default.onnx", "model_ts.onnx"):
        model, data = os.path.join(small, name, file), os.path.join(small, name, "batches.safetensors")
        if not os.path.exists(model) or not os.path.exists(data):
            continue
        golden = json.load(open(os.path.join(small, name, "golden.json" if os.path.exists(os.path.join(small, name, "golden.json")) else "golden_adamw.json")))
        spec = golden["loss"] if isinstance(golden["loss"], dict) else {"type": golden["loss"]}
        with tempfile.TemporaryDirectory() as tmp:
            run = lambda *a: subprocess.run([aitk, *a], capture_output=True, text=True)
            loss = {"cross_entropy": "cross-entropy", "mse": "mse"}.get(spec["type"], "bce-logits")
            if spec.get("class_axis") is not None and loss == "cross-entropy":
                loss += ":axis=%d" % spec["class_axis"]
            w, out = os.path.join(tmp, "w.safetensors"), os.path.join(tmp, "t.onnx")
            for step in (("train", model, "--data", data, "--steps", "3", "--save", w, "--quiet", "--loss", loss), ("export", model, "--weights", w, "-o", out),
                         ("eval", out, "--data", data, "--loss", loss, "--metric", "loss")):
                r = run(*step)
                if r.returncode:
                    break
            if r.returncode:
                print(name, file, "not run:", r.stderr.strip().splitlines()[-1][:120])
                continue
            ours = float(re.search(r"loss ([-0-9.e+]+)", r.stdout).group(1))
            s = ort.InferenceSession(out, providers=["CPUExecutionProvider"])
            batches, total, n = load_file(data), 0.0, 0
            while f"step{n}.target" in batches:
                feed = {i.name: batches[f"step{n}.{i.name}"] for i in s.get_inputs()}
                total += loss_of(spec, s.run(None, feed)[0], batches[f"step{n}.target"])
                n += 1
            theirs = total / n
            ok = abs(ours - theirs) <= 6e-5 * max(1, abs(theirs))
            failed += not ok
            print(name, file, "equal" if ok else "DIFFERENT", ours, theirs)
sys.exit(failed > 0)
