"""Models of Hugging Face transformers, small ones with the library's own code: what people get from a configuration."""

import torch
import transformers as tf
from torch import nn


class Output(nn.Module):
    """A model whose result is one tensor."""

    def __init__(self, model, name, **options):
        super().__init__()
        self.model, self.name, self.options = model, name, options

    def forward(self, x):
        return getattr(self.model(x, **self.options), self.name)


def decoder(kind, **sizes):
    config = getattr(tf, kind + "Config")(vocab_size=512, **sizes)
    config._experts_implementation = "batched_mm"  # the default, one kernel for groups of rows, has no ONNX
    return Output(getattr(tf, kind + {"GPT2": "LMHeadModel"}.get(kind, "ForCausalLM"))(config), "logits", use_cache=False)


LLAMA = {"hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
VIT = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 512, "image_size": 32, "patch_size": 8}
RESNET = {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1], "layer_type": "basic"}
IDS, IMAGES = torch.zeros(4, 64, dtype=torch.int64), torch.zeros(8, 3, 32, 32)
MODELS = {
    "nanoGPT": lambda: (decoder("GPT2", n_embd=128, n_layer=2, n_head=4, n_positions=64), [IDS]),
    "Llama": lambda: (decoder("Llama", **LLAMA), [IDS]),
    "ViT": lambda: (Output(tf.ViTForImageClassification(tf.ViTConfig(**VIT)), "logits"), [IMAGES]),
    "ResNet": lambda: (Output(tf.ResNetForImageClassification(tf.ResNetConfig(**RESNET)), "logits"), [IMAGES]),
    "U-Net": lambda: (Output(tf.SegformerForSemanticSegmentation(tf.SegformerConfig(depths=[1, 1, 1, 1])), "logits"), [IMAGES]),
    "Mixtral": lambda: (decoder("Mixtral", num_local_experts=4, **LLAMA), [IDS]),
}
