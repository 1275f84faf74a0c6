#!/usr/bin/env python3
"""Copies one small golden training into testdata/golden, so that parity is tested without the full collection.

Usage: python3 testdata/make/golden.py MODELS_SMALL_FOLDER

mlp_digits is a 64-32-10 perceptron exported by PyTorch, with the batches, losses, gradients and final parameters of PyTorch's own float64 run.
"""
import pathlib
import shutil
import sys

if len(sys.argv) != 2:
    sys.exit(__doc__)
source = pathlib.Path(sys.argv[1]) / "mlp_digits"
target = pathlib.Path(__file__).resolve().parent.parent / "golden" / "mlp_digits"
target.mkdir(parents=True, exist_ok=True)
for name in ["model.onnx", "batches.safetensors", "golden.json", "golden_adamw.json", "golden_clip.json", "golden_accumulate4.json",
             "golden_sgd_nesterov.json", "final.safetensors", "final_adamw.safetensors", "final_clip.safetensors",
             "final_accumulate4.safetensors", "final_sgd_nesterov.safetensors", "grads0.safetensors"]:
    shutil.copyfile(source / name, target / name)
