"""Exports of PyTorch's older exporter (torch 1.13, TorchScript) for the linter's test, each with one planted fault.

    python3 testdata/make/lint_torch.py testdata/onnx/lint

Needs torch 1.13 (Debian: python3-torch). lint_more.py makes the files that are derived from these and writes expect.json.
"""
import sys, os, warnings
import torch
from torch import nn

warnings.filterwarnings("ignore")
out = sys.argv[1]
os.makedirs(out, exist_ok=True)
torch.manual_seed(0)
TRAIN, EVAL, KEEP = torch.onnx.TrainingMode.TRAINING, torch.onnx.TrainingMode.EVAL, torch.onnx.TrainingMode.PRESERVE


def nudge(m):
    """Norms' ones and zeros get noise, as in a trained model."""
    for p in m.parameters():
        if p.dim() == 1:
            p.data.add_(torch.randn_like(p) * 0.1)
    for n, b in m.named_buffers():
        if "running" in n:
            b.add_(torch.rand_like(b) * 0.1)
    return m


def export(name, m, x, mode=TRAIN, fold=False, dynamic=True, opset=15, names=("x",), **kw):
    x = x if isinstance(x, tuple) else (x,)
    axes = {n: {0: "batch"} for n in names} if dynamic else {}
    m.train(mode == TRAIN)
    torch.onnx.export(m, x, os.path.join(out, name + ".onnx"), training=mode, do_constant_folding=fold, input_names=list(names),
                      output_names=kw.pop("outputs", ["y"]), dynamic_axes=axes, opset_version=opset, **kw)


class Net(nn.Module):
    def __init__(self, drop=0.0):
        super().__init__()
        self.fc1, self.fc2, self.drop = nn.Linear(8, 6), nn.Linear(6, 4), nn.Dropout(drop)

    def forward(self, x):
        return self.fc2(self.drop(torch.relu(self.fc1(x))))


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.fc = nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4), nn.Linear(144, 3)

    def forward(self, x):
        return self.fc(torch.relu(self.bn(self.conv(x))).flatten(1))


class Lm(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.norm = nn.Embedding(16, 8), nn.LayerNorm(8)
        self.head = nn.Linear(8, 16, bias=False)
        self.head.weight = self.tok.weight

    def forward(self, x):
        return self.head(self.norm(self.tok(x)))


class Wrap(nn.Module):
    def __init__(self, m, f):
        super().__init__()
        self.m, self.f = m, f

    def forward(self, *x):
        return self.f(self.m, *x)


x, img, ids = torch.randn(2, 8), torch.randn(2, 1, 8, 8), torch.randint(0, 16, (2, 5))
export("ts_clean", nudge(Net()), x)
export("ts_folded_bn", nudge(Conv()), img, EVAL, True)
export("ts_inference_bn", nudge(Conv()), img, KEEP)
export("ts_training_bn", nudge(Conv()), img)
export("ts_lost_tie", nudge(Lm()), ids, EVAL, True)
export("ts_kept_tie", nudge(Lm()), ids)
export("ts_dropout_old", nudge(Net(0.25)), x, TRAIN, opset=11)
export("ts_fixed_batch", nudge(Net()), x, dynamic=False)
export("ts_softmax", Wrap(nudge(Net()), lambda m, x: torch.softmax(m(x), 1)), x)
export("ts_argmax", Wrap(nudge(Net()), lambda m, x: m(x).argmax(1)), x)
export("ts_round", Wrap(nudge(Net()), lambda m, x: torch.round(m(x))), x)
export("ts_double", nudge(Net()).double(), x.double())


class Cached(nn.Module):
    """One step of generating: keys and values of the past come in and go out."""

    def __init__(self):
        super().__init__()
        self.q, self.kv, self.o = nn.Linear(8, 8), nn.Linear(8, 16), nn.Linear(8, 4)

    def forward(self, x, past_key, past_value):
        k, v = self.kv(x).chunk(2, -1)
        k, v = torch.cat([past_key, k], 1), torch.cat([past_value, v], 1)
        return self.o(torch.softmax(self.q(x) @ k.transpose(1, 2), -1) @ v), k, v


export("ts_cache", nudge(Cached()), (torch.randn(2, 1, 8), torch.randn(2, 3, 8), torch.randn(2, 3, 8)), names=("x", "past_key", "past_value"),
       outputs=["y", "present_key", "present_value"])
enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8, 0.0, batch_first=True), 2)
export("ts_false_ties", enc, torch.randn(2, 3, 8), EVAL, True)
