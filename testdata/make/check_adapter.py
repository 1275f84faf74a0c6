#!/usr/bin/env python3
"""Loads adapters that aitk has written with the libraries that they are written for, and holds outputs against aitk's.

Needs torch, diffusers, peft, safetensors, onnx, and the golden models beside the repository. From the repository's root:

    go test ./internal/e2e -run TestAdapterFiles -args -adapter-out /tmp/adapters
    python3 testdata/make/check_adapter.py /tmp/adapters

The base is flux_mini, with weights from its ONNX file; the input is the golden's first batch. Exit status 1 if an output is further away than
1e-5 of its largest number, or if the adapter changes nothing.
"""
import os
import sys

import numpy as np
import onnx
import torch
from diffusers import FluxTransformer2DModel
from onnx import numpy_helper
from peft import PeftModel
from safetensors.torch import load_file

BASE = "../shared/models/small/flux_mini"
CONFIG = dict(patch_size=1, in_channels=16, num_layers=2, num_single_layers=2, attention_head_dim=16, num_attention_heads=2,
              joint_attention_dim=32, pooled_projection_dim=32, guidance_embeds=True, axes_dims_rope=(4, 6, 6))


def base():
    model = FluxTransformer2DModel(**CONFIG)
    graph = onnx.load(os.path.join(BASE, "model.onnx")).graph
    state = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()) for t in graph.initializer}
    want = model.state_dict()
    model.load_state_dict({k: state[k] for k in want}, strict=True)
    return model.eval()


def run(model):
    batch = load_file(os.path.join(BASE, "batches.safetensors"))
    x = {k[len("step0."):]: v for k, v in batch.items() if k.startswith("step0.") and not k.endswith("target")}
    with torch.no_grad():
        return model(**x, return_dict=False)[0].numpy().ravel()


def with_diffusers(folder, name):
    model = base()
    state = load_file(os.path.join(folder, name, "adapter_model.safetensors"))
    if name == "diffusers":
        model.load_lora_adapter(state, prefix="transformer")
        return model
    # Kohya's keys name modules of the original FLUX code, which this toy has not; they are read by hand: underscores for dots.
    modules = {n.replace(".", "_"): n for n, _ in model.named_modules()}
    for key in [k for k in state if k.endswith(".lora_down.weight")]:
        flat = key[len("lora_unet_"):-len(".lora_down.weight")]
        down, up = state[key], state[key.replace("lora_down", "lora_up")]
        scale = state[key.replace("lora_down.weight", "alpha")].item() / down.shape[0]
        layer = model.get_submodule(modules[flat])
        layer.weight.data += scale * up @ down
    return model


def main():
    folder = sys.argv[1]
    ours = load_file(os.path.join(folder, "output.safetensors"))["prediction"].numpy()
    plain = run(base())
    most, bad = np.abs(ours).max(), False
    print(f"without adapter {np.abs(plain - ours).max() / most:.2e} apart")
    if np.abs(plain - ours).max() / most < 1e-3:
        bad = True
    for name, model in (("peft", PeftModel.from_pretrained(base(), os.path.join(folder, "peft"))),
                        ("diffusers", with_diffusers(folder, "diffusers")), ("kohya", with_diffusers(folder, "kohya"))):
        d = np.abs(run(model) - ours).max() / most
        print(f"{name} {d:.2e} apart")
        bad = bad or not d <= 1e-5
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
