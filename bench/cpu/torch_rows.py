"""The rows of bench/cpu in PyTorch's eager mode. Each function gets the arguments and returns a function that computes the
row and returns its results."""
import torch
import torch.nn.functional as F


def inference(f):
    """Makes a row of a function without gradients."""

    def make(args, attrs):
        def run():
            with torch.inference_mode():
                return [f(*args)]

        return run

    return make


gemm = inference(torch.mm)
gemm_bias_gelu = inference(lambda x, w, b: F.gelu(torch.addmm(b, x, w)))
softmax = inference(lambda x: torch.softmax(x, -1))
layer_norm = inference(lambda x, s, c: F.layer_norm(x, (x.shape[-1],), s, c))
chain = inference(lambda x, s, c, r: F.silu(x * s + c) + r)
column_sum = inference(lambda x: x.sum(0))
transpose = inference(lambda x: x.t().contiguous())


def attention(args, attrs):
    return inference(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=attrs.get("causal", False)))(args, attrs)


def convolution(args, attrs):
    return inference(lambda x, w: F.conv2d(x, w, padding=attrs["pad"]))(args, attrs)


def written(q, k, v):
    """Attention as bert.dmir writes it."""
    return torch.softmax((q @ k.transpose(-1, -2)) * 0.125, -1) @ v


def layer(attend):
    """Returns the encoder layer of bert.dmir with that attention."""

    def f(x, w_qkv, b_qkv, w_out, b_out, scale1, bias1, w_up, b_up, w_down, b_down, scale2, bias2):
        b, l, n = x.shape
        stacked, h, p, _ = w_qkv.shape
        qkv = F.linear(x, w_qkv.view(-1, n), b_qkv.view(-1)).view(b, l, stacked, h, p)
        gamma = attend(*qkv.permute(2, 0, 3, 1, 4).unbind(0)).transpose(1, 2).reshape(b, l, h * p)
        norm1 = F.layer_norm(F.linear(gamma, w_out.view(-1, n).t(), b_out) + x, (n,), scale1, bias1)
        hidden = F.relu(F.linear(norm1, w_up.t(), b_up))
        return F.layer_norm(F.linear(hidden, w_down.t(), b_down) + norm1, (n,), scale2, bias2)

    return f


bert = inference(layer(written))
bert_sdpa = inference(layer(F.scaled_dot_product_attention))


def training(f):
    """Makes a row of a function's result and the gradients of its arguments; the last argument is the cotangent."""

    def make(args, attrs):
        wanted = [x.requires_grad_() for x in args[:-1]]

        def run():
            y = f(*wanted)
            return [y, *torch.autograd.grad(y, wanted, args[-1])]

        return run

    return make


bert_train = training(layer(written))
bert_train_sdpa = training(layer(F.scaled_dot_product_attention))
