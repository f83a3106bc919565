"""Exports models of torchvision, timm and transformers with random weights as ONNX files, for bench/first.

usage: models.py FOLDER [NAME...]    (needs torch, torchvision, timm, transformers, onnxscript)
"""

import pathlib
import sys
import warnings

import torch
import transformers as tf

warnings.filterwarnings("ignore")

VISION = (
    "alexnet convnext_tiny densenet121 efficientnet_b0 googlenet inception_v3 maxvit_t mnasnet0_5 mobilenet_v2 mobilenet_v3_small"
    " regnet_y_400mf resnet18 resnet50 resnext50_32x4d shufflenet_v2_x0_5 squeezenet1_1 swin_t vgg11 vit_b_16 wide_resnet50_2"
).split()
TIMM = "cait_xxs24_224 coat_tiny deit_tiny_patch16_224 hrnet_w18_small mixer_s32_224 poolformer_s12 repvgg_a0 xcit_nano_12_p16_224".split()
TEXT = {
    "bert": lambda: tf.BertModel(tf.BertConfig(num_hidden_layers=2)),
    "distilbert": lambda: tf.DistilBertModel(tf.DistilBertConfig(n_layers=2)),
    "gpt2": lambda: tf.GPT2Model(tf.GPT2Config(n_layer=2)),
    "opt": lambda: tf.OPTModel(tf.OPTConfig(num_hidden_layers=2)),
    "qwen2": lambda: tf.Qwen2Model(tf.Qwen2Config(num_hidden_layers=2, hidden_size=896, intermediate_size=4864, num_attention_heads=14, num_key_value_heads=2, vocab_size=32000)),
}


class Tokens(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(input_ids=ids, **({"use_cache": False} if hasattr(self.model.config, "use_cache") else {})).last_hidden_state


def build(name):
    if name in TEXT:
        return Tokens(TEXT[name]()), torch.randint(0, 1000, (1, 64))
    if name in TIMM:
        import timm

        return timm.create_model(name, pretrained=False), torch.randn(1, 3, 224, 224)
    import torchvision

    size = 299 if name == "inception_v3" else 224
    return getattr(torchvision.models, name)(weights=None), torch.randn(1, 3, size, size)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or [*VISION, *TIMM, *TEXT]:
        torch.manual_seed(0)
        model, x = build(name)
        torch.onnx.export(model.eval(), (x,), folder / f"{name}.onnx", dynamo=True, verbose=False)


main()
