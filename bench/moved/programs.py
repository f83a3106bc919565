"""The programs of testdata in PyTorch: one function each, with the arguments of @forward in their order."""
import torch
import torch.nn.functional as F

RATE = [0.1]  # of dropout; 0 where values are compared


def dropout(x):
    return F.dropout(x, RATE[0], training=RATE[0] > 0)


def heads(x, w, b=None):
    """Projects tokens [b, n, e] by w [e, h, p] to [b, h, n, p]."""
    y = x @ w.flatten(1)
    if b is not None:
        y = y + b.flatten()
    return y.view(*x.shape[:2], *w.shape[1:]).transpose(1, 2)


def joined(a, w):
    """Projects heads [b, h, n, p] by w [h, p, e] to [b, n, e]."""
    b, h, n, p = a.shape
    return a.transpose(1, 2).reshape(b, n, h * p) @ w.flatten(0, 1)


def causal(scores):
    n = scores.shape[-1]
    i = torch.arange(n)
    return torch.where(i[:, None] >= i[None, :], scores, float("-inf"))


def written(q, k, v):
    return torch.softmax(causal(q @ k.transpose(-2, -1) * 0.125), -1) @ v


def fused(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def gpt2(attend, x, scale1, shift1, w_qkv, b_qkv, w_out, b_out, scale2, shift2, w_up, b_up, w_down, b_down):
    n1 = F.layer_norm(x, x.shape[-1:], scale1, shift1)
    qkv = (n1 @ w_qkv.flatten(1) + b_qkv.flatten()).view(*x.shape[:2], *w_qkv.shape[1:])
    q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
    r = joined(attend(q, k, v), w_out) + b_out + x
    n2 = F.layer_norm(r, x.shape[-1:], scale2, shift2)
    return F.gelu(n2 @ w_up + b_up) @ w_down + b_down + r


def gpt2_fused(*args):
    return gpt2(fused, *args)


def gpt2_written(*args):
    return gpt2(written, *args)


def bert_layer(drop, x, mask, w_q, b_q, w_k, b_k, w_v, b_v, w_out, b_out, scale1, shift1, w_up, b_up, w_down, b_down, scale2, shift2):
    a = F.scaled_dot_product_attention(heads(x, w_q, b_q), heads(x, w_k, b_k), heads(x, w_v, b_v), attn_mask=mask)
    n1 = F.layer_norm(drop(joined(a, w_out) + b_out) + x, x.shape[-1:], scale1, shift1)
    return F.layer_norm(drop(F.gelu(n1 @ w_up + b_up) @ w_down + b_down) + n1, x.shape[-1:], scale2, shift2)


def bert(*args):
    return bert_layer(lambda x: x, *args)


def bert_dropout(*args):
    return bert_layer(dropout, *args)


def turned(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def llama(x, cos, sin, scale1, w_q, w_k, w_v, w_out, scale2, w_gate, w_up, w_down):
    n1 = F.rms_norm(x, x.shape[-1:], scale1, 1e-5)
    q, k, v = turned(heads(n1, w_q), cos, sin), turned(heads(n1, w_k), cos, sin), heads(n1, w_v)
    r = joined(F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True), w_out) + x
    n2 = F.rms_norm(r, x.shape[-1:], scale2, 1e-5)
    return (F.silu(n2 @ w_gate) * (n2 @ w_up)) @ w_down + r


def t5_attention(x, scale, buckets, table, w_q, w_k, w_v, w_out):
    n = F.rms_norm(x, x.shape[-1:], scale, 1e-6)
    bias = F.embedding(buckets, table).permute(2, 0, 1)
    scores = heads(n, w_q) @ heads(n, w_k).transpose(-2, -1) + bias
    return joined(torch.softmax(scores, -1) @ heads(n, w_v), w_out) + x


def alibi_attention(q, k, v, slopes):
    i = torch.arange(q.shape[-2])
    bias = slopes * (i[None, :] - i[:, None]).to(q.dtype)
    return torch.softmax(causal(q @ k.transpose(-2, -1) * 0.125 + bias), -1) @ v


attention_fused = fused


def attention_written(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) * 0.125, -1) @ v


def stacked_qkv(x, w):
    q, k, v = (x @ w.flatten(1)).view(*x.shape[:2], *w.shape[1:]).unbind(2)
    return fused(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))


def mlp(x, labels, w1, b1, w2, b2, w3, b3):
    h = torch.relu(torch.relu(x @ w1 + b1) @ w2 + b2)
    return F.cross_entropy((h @ w3 + b3).float(), labels)


def mlp_gelu(x, w1, b1, w2, b2):
    return F.gelu(x @ w1 + b1) @ w2 + b2


def mlp_gated(x, w_gate, w_up, w_down):
    return (F.silu(x @ w_gate) * (x @ w_up)) @ w_down


def cross_entropy(x, labels):
    return F.cross_entropy(x, labels)


def cross_entropy_written(x, labels):
    return -torch.log_softmax(x, 1).gather(1, labels[:, None]).mean()


def label_smoothing(x, labels):
    y = torch.log_softmax(x, 1)
    return (-0.9 * y.gather(1, labels[:, None])[:, 0] - 0.1 / x.shape[1] * y.sum(1)).mean()


def mse(x, target):
    return F.mse_loss(x, target)


def kl(student, teacher):
    return F.kl_div(torch.log_softmax(student, 1), torch.log_softmax(teacher, 1), reduction="batchmean", log_target=True)


def language_model_head(x, scale, tokens, labels):
    return F.cross_entropy((F.rms_norm(x, x.shape[-1:], scale, 1e-5) @ tokens.T).float(), labels)


def layer_norm(x, scale, shift):
    return F.layer_norm(x, x.shape[-1:], scale, shift)


def rms_norm(x, scale):
    return F.rms_norm(x, x.shape[-1:], scale, 1e-5)


def add_norm(x, residual, scale, shift):
    r = dropout(x) + residual
    return F.layer_norm(r, x.shape[-1:], scale, shift), r


def layer_norm_written(x, scale, shift):
    d = x - x.mean(1, keepdim=True)
    return d * torch.rsqrt((d * d).mean(1, keepdim=True) + 1e-5) * scale + shift


def bn(x, scale, shift):
    return F.batch_norm(x, None, None, scale, shift, training=True)


def batch_norm(x, scale, shift):
    return torch.relu(bn(x, scale, shift))


def group_norm(x, scale, shift):
    return F.silu(F.group_norm(x, 8, scale, shift))


def max_pool(x):
    return F.max_pool2d(torch.relu(x), 2)


def resnet_basic(x, w1, scale1, shift1, w2, scale2, shift2):
    h = torch.relu(bn(F.conv2d(x, w1, padding=1), scale1, shift1))
    return torch.relu(bn(F.conv2d(h, w2, padding=1), scale2, shift2) + x)


def resnet_bottleneck(x, w1, scale1, shift1, w2, scale2, shift2, w3, scale3, shift3):
    h = torch.relu(bn(F.conv2d(x, w1), scale1, shift1))
    h = torch.relu(bn(F.conv2d(h, w2, padding=1), scale2, shift2))
    return torch.relu(bn(F.conv2d(h, w3), scale3, shift3) + x)


def sgd_momentum(w, g, m):
    m = 0.9 * m + g + 0.0005 * w
    return w - 0.1 * m, m


def adamw(w, g, m, v, step):
    g = g.to(w.dtype)
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    a, b = m / (1 - 0.9**step), v / (1 - 0.999**step)
    return w - 0.001 * (a / (b.sqrt() + 1e-8) + 0.1 * w), m, v


def adamw_half(w, g, m, v, step):
    w, m, v = adamw(w, g, m, v, step)
    return w, m, v, w.to(g.dtype)


def clip_by_norm(a, b):
    s = torch.clamp(1 / torch.sqrt((a * a).sum() + (b * b).sum()), max=1)
    return a * s, b * s


def embedding(ids, tokens, positions, scale, shift):
    return F.layer_norm(F.embedding(ids, tokens) + positions, scale.shape, scale, shift)


def embedding_bag(ids, table):
    return F.embedding(ids, table).mean(1)


def gather_columns(x, columns, s):
    return x.gather(1, columns) * s


def softmax(x):
    return torch.softmax(x, 1)


def softmax_dropout(x, mask):
    return dropout(torch.softmax(x * 0.125 + mask, -1))


def row_moments(x):
    return x.mean(1), x.var(1, correction=0)


def row_and_column_sums(x):
    return x.sum(1), x.sum(0), x.sum()


def log_sum_exp(x):
    return torch.logsumexp(x, 1)


def norm_amax(x, scale, shift):
    y = F.layer_norm(x, x.shape[-1:], scale, shift)
    return y, y.abs().amax()


def rotary(x, cos, sin):
    return turned(x, cos, sin)


def contrastive(a, b):
    s = F.normalize(a, dim=1) @ F.normalize(b, dim=1).T * 20
    labels = torch.arange(a.shape[0])
    return F.cross_entropy(s, labels) + F.cross_entropy(s.T, labels)


def conv_inference(x, w, scale, shift, mean, variance):
    return torch.relu(F.batch_norm(F.conv2d(x, w, padding=1), mean, variance, scale, shift))


def convnext(x, w, b, scale, shift, w1, b1, w2, b2):
    h = (F.conv2d(x, w, padding=3, groups=x.shape[1]) + b).permute(0, 2, 3, 1)
    h = F.gelu(F.layer_norm(h, h.shape[-1:], scale, shift) @ w1 + b1) @ w2 + b2
    return h.permute(0, 3, 1, 2) + x


def squeeze_excite(x, w1, w2):
    return x * torch.sigmoid(torch.relu(x.mean((2, 3)) @ w1) @ w2)[:, :, None, None]


def gated_halves(x, w, b):
    return dropout(F.glu(x @ w + b, -1))


def dense_block(a, b, c, scale, shift, w):
    return F.conv2d(torch.relu(bn(torch.cat([a, b, c], 1), scale, shift)), w, padding=1)


def lora(x, w, down, up):
    return x @ w + x @ down @ up * 2


def huber(x, target):
    return F.huber_loss(x, target)


def focal(x, target):
    p = torch.sigmoid(x)
    right = p * target + (1 - p) * (1 - target)
    return (F.binary_cross_entropy_with_logits(x, target, reduction="none") * (1 - right) ** 2).mean()


def decode(q, k, v, keys, values):
    keys = torch.cat([keys[:, :, :-1], k], 2)
    values = torch.cat([values[:, :, :-1], v], 2)
    return F.scaled_dot_product_attention(q, keys, values), keys, values


def cosine(a, b):
    return (a * b).sum(1) * torch.rsqrt((a * a).sum(1) * (b * b).sum(1))


def patches(x, w, b, positions):
    b0, c, h, _ = x.shape
    cut = x.view(b0, c, h // 16, 16, h // 16, 16).permute(0, 2, 4, 1, 3, 5).flatten(3)
    return cut @ w.flatten(0, 2) + b + positions
