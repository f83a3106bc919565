package differential

import (
	"strings"
	"testing"

	"dmir/testkit/need"
)

// storedAttention is attention to what sparse tensors of several formats store, as text writes it, and its gradient.
const storedAttention = `
!csr = tensor<48x40xf32, #dm.csr<nnz = 300>>
!bsr = tensor<48x40xf16, #dm.bsr<8x4, nnz = 20>>
!within = tensor<3x48x40xf32, #dm.sparse<map = (h, i, j) -> (i : dense, j : compressed, h : dense), nnz = 250>>
!apart = tensor<3x48x40xf32, #dm.sparse<map = (h, i, j) -> (h : dense, i : dense, j : compressed), nnz = 500>>

func.func @f(%csr: !csr, %bsr: !bsr, %within: !within {dm.pattern = "power_law"}, %apart: !apart,
    %q: tensor<48x20xf32>, %k: tensor<40x20xf32>, %v: tensor<40x12xf32>, %bq: tensor<48x16xf16>, %bk: tensor<40x16xf16>, %bv: tensor<40x24xf16>,
    %hq: tensor<48x3x8xf32>, %hk: tensor<40x3x8xf32>, %hv: tensor<40x3x6xf32>, %vk: tensor<40x8xf32>,
    %qn: tensor<48xf32>, %kn: tensor<40xf32>, %hqn: tensor<48x3xf32>, %hkn: tensor<40x3xf32>)
    -> (tensor<48x12xf32>, tensor<48x24xf16>, tensor<48x3x6xf32>, tensor<3x48x6xf32>, tensor<6x48x3xf32>, tensor<48x12xf32>, tensor<48x20xf32>, tensor<40x20xf32>, tensor<40x12xf32>, !csr,
        tensor<48x12xf32>, tensor<3x48x6xf32>, tensor<48xf32>, tensor<40xf32>, tensor<40x12xf32>, !csr) {
  %scale = dm.constant dense<0.25> : tensor<f32>
  %half = dm.constant dense<0.5> : tensor<f16>

  %s = dm.sample "id,jd->ij" %csr, %q, %k : (!csr, tensor<48x20xf32>, tensor<40x20xf32>) -> !csr
  %ss = dm.mul %s, %scale : (!csr, tensor<f32>) -> !csr
  %biased = dm.add %csr, %ss : !csr
  %p = dm.softmax %biased, dim = 1 : !csr
  %y = dm.matmul %p, %v : (!csr, tensor<40x12xf32>) -> tensor<48x12xf32>

  %bqs = dm.div %bq, %half : (tensor<48x16xf16>, tensor<f16>) -> tensor<48x16xf16>
  %bs = dm.sample "jd,id->ij" %bsr, %bk, %bqs : (!bsr, tensor<40x16xf16>, tensor<48x16xf16>) -> !bsr
  %bp = dm.softmax %bs, dim = 1 : !bsr
  %by = dm.matmul %bp, %bv : (!bsr, tensor<40x24xf16>) -> tensor<48x24xf16>

  %ws = dm.sample "ihd,jhd->hij" %within, %hq, %hk : (!within, tensor<48x3x8xf32>, tensor<40x3x8xf32>) -> !within
  %wb = dm.add %ws, %within : !within
  %wp = dm.softmax %wb, dim = 2 : !within
  %wy = dm.einsum "hij,jhd->ihd" %wp, %hv : (!within, tensor<40x3x6xf32>) -> tensor<48x3x6xf32>

  %as = dm.sample "ihd,jhd->hij" %apart, %hq, %hk : (!apart, tensor<48x3x8xf32>, tensor<40x3x8xf32>) -> !apart
  %ap = dm.softmax %as, dim = 2 : !apart
  %ay = dm.einsum "jhd,hij->hid" %hv, %ap : (tensor<40x3x6xf32>, !apart) -> tensor<3x48x6xf32>

  %os = dm.sample "ihd,jd->hij" %within, %hq, %vk : (!within, tensor<48x3x8xf32>, tensor<40x8xf32>) -> !within
  %op = dm.softmax %os, dim = 2 : !within
  %six = dm.slice %v, dims = [1], start_indices = [0], limit_indices = [6] : (tensor<40x12xf32>) -> tensor<40x6xf32>
  %oy = dm.einsum "hij,jd->dih" %op, %six : (!within, tensor<40x6xf32>) -> tensor<6x48x3xf32>

  // Graph attention: with a number for each edge, and of several heads.
  %gy = func.call @graph(%csr, %qn, %kn, %v) : (!csr, tensor<48xf32>, tensor<40xf32>, tensor<40x12xf32>) -> tensor<48x12xf32>
  %slope = dm.constant dense<0.2> : tensor<f32>
  %gi = dm.sample "ih->hij" %within, %hqn : (!within, tensor<48x3xf32>) -> !within
  %gj = dm.sample "jh->hij" %within, %hkn : (!within, tensor<40x3xf32>) -> !within
  %gs = dm.add %gj, %gi : !within
  %gl = dm.mul %gs, %slope : (!within, tensor<f32>) -> !within
  %gm = dm.max %gl, %gs : !within
  %gp = dm.softmax %gm, dim = 2 : !within
  %ghy = dm.einsum "hij,jhd->hid" %gp, %hv : (!within, tensor<40x3x6xf32>) -> tensor<3x48x6xf32>
  %gloss, %dqn, %dkn, %dgv, %dedges = dm.grad @graph_loss %csr, %qn, %kn, %v, %y, wrt = [1, 2, 3, 0] : (!csr, tensor<48xf32>, tensor<40xf32>, tensor<40x12xf32>, tensor<48x12xf32>) -> (tensor<f32>, tensor<48xf32>, tensor<40xf32>, tensor<40x12xf32>, !csr)

  %loss, %dq, %dk, %dv, %dcsr = dm.grad @weighted %q, %k, %v, %csr, %y, wrt = [0, 1, 2, 3] : (tensor<48x20xf32>, tensor<40x20xf32>, tensor<40x12xf32>, !csr, tensor<48x12xf32>) -> (tensor<f32>, tensor<48x20xf32>, tensor<40x20xf32>, tensor<40x12xf32>, !csr)
  return %y, %by, %wy, %ay, %oy, %y, %dq, %dk, %dv, %dcsr, %gy, %ghy, %dqn, %dkn, %dgv, %dedges : tensor<48x12xf32>, tensor<48x24xf16>, tensor<48x3x6xf32>, tensor<3x48x6xf32>, tensor<6x48x3xf32>, tensor<48x12xf32>, tensor<48x20xf32>, tensor<40x20xf32>, tensor<40x12xf32>, !csr, tensor<48x12xf32>, tensor<3x48x6xf32>, tensor<48xf32>, tensor<40xf32>, tensor<40x12xf32>, !csr
}

func.func private @graph(%csr: !csr, %q: tensor<48xf32>, %k: tensor<40xf32>, %v: tensor<40x12xf32>) -> tensor<48x12xf32> {
  %i = dm.sample "i->ij" %csr, %q : (!csr, tensor<48xf32>) -> !csr
  %j = dm.sample "j->ij" %csr, %k : (!csr, tensor<40xf32>) -> !csr
  %n = dm.add %i, %j : !csr
  %s = dm.add %n, %csr : !csr
  %slope = dm.constant dense<0.2> : tensor<f32>
  %low = dm.mul %s, %slope : (!csr, tensor<f32>) -> !csr
  %l = dm.max %s, %low : !csr
  %p = dm.softmax %l, dim = 1 : !csr
  %y = dm.matmul %p, %v : (!csr, tensor<40x12xf32>) -> tensor<48x12xf32>
  return %y : tensor<48x12xf32>
}

func.func private @graph_loss(%csr: !csr, %q: tensor<48xf32>, %k: tensor<40xf32>, %v: tensor<40x12xf32>, %w: tensor<48x12xf32>) -> tensor<f32> {
  %y = func.call @graph(%csr, %q, %k, %v) : (!csr, tensor<48xf32>, tensor<40xf32>, tensor<40x12xf32>) -> tensor<48x12xf32>
  %z = dm.mul %y, %w : tensor<48x12xf32>
  %loss = dm.reduce add %z, dims = [0, 1] : (tensor<48x12xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

func.func private @weighted(%q: tensor<48x20xf32>, %k: tensor<40x20xf32>, %v: tensor<40x12xf32>, %csr: !csr, %w: tensor<48x12xf32>) -> tensor<f32> {
  %s = dm.sample "id,jd->ij" %csr, %q, %k : (!csr, tensor<48x20xf32>, tensor<40x20xf32>) -> !csr
  %biased = dm.add %s, %csr : !csr
  %p = dm.softmax %biased, dim = 1 : !csr
  %y = dm.matmul %p, %v : (!csr, tensor<40x12xf32>) -> tensor<48x12xf32>
  %z = dm.mul %y, %w : tensor<48x12xf32>
  %loss = dm.reduce add %z, dims = [0, 1] : (tensor<48x12xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
`

// outerSums is graph attention whose scores are written as a dense sum of a number of each row and one of each column, with the slope in front of
// the sample and behind it, and of several heads.
const outerSums = `
!csr = tensor<48x40xf32, #dm.csr<nnz = 300>>
!within = tensor<3x48x40xf32, #dm.sparse<map = (h, i, j) -> (i : dense, j : compressed, h : dense), nnz = 250>>
!d = tensor<48x40xf32>
!e = tensor<3x48x40xf32>
!v = tensor<40x12xf32>
!y = tensor<48x12xf32>

func.func @f(%csr: !csr, %within: !within, %q: tensor<48xf32>, %k: tensor<40xf32>, %hq: tensor<3x48x1xf32>, %hk: tensor<3x40xf32>, %v: !v, %hv: tensor<3x40x6xf32>) -> (!y, tensor<3x48x6xf32>, tensor<48xf32>, tensor<40xf32>) {
  %slope = dm.constant dense<0.2> : tensor<f32>
  %column = dm.reshape %q : (tensor<48xf32>) -> tensor<48x1xf32>
  %sum = dm.add %column, %k : (tensor<48x1xf32>, tensor<40xf32>) -> !d
  %s = dm.sample %csr, %sum : (!csr, !d) -> !csr
  %low = dm.mul %s, %slope : (!csr, tensor<f32>) -> !csr
  %m = dm.max %s, %low : !csr
  %p = dm.softmax %m, dim = 1 : !csr
  %y = dm.matmul %p, %v : (!csr, !v) -> !y

  %hr = dm.reshape %hk : (tensor<3x40xf32>) -> tensor<3x1x40xf32>
  %wide = dm.broadcast %hr : (tensor<3x1x40xf32>) -> !e
  %hsum = dm.add %wide, %hq : (!e, tensor<3x48x1xf32>) -> !e
  %hs = dm.sample %within, %hsum : (!within, !e) -> !within
  %hp = dm.softmax %hs, dim = 2 : !within
  %hy = dm.einsum "hij,hjd->hid" %hp, %hv : (!within, tensor<3x40x6xf32>) -> tensor<3x48x6xf32>

  %loss, %dq, %dk = dm.grad @loss %csr, %q, %k, %v, wrt = [1, 2] : (!csr, tensor<48xf32>, tensor<40xf32>, !v) -> (tensor<f32>, tensor<48xf32>, tensor<40xf32>)
  return %y, %hy, %dq, %dk : !y, tensor<3x48x6xf32>, tensor<48xf32>, tensor<40xf32>
}

func.func private @loss(%csr: !csr, %q: tensor<48xf32>, %k: tensor<40xf32>, %v: !v) -> tensor<f32> {
  %column = dm.reshape %q : (tensor<48xf32>) -> tensor<48x1xf32>
  %row = dm.reshape %k : (tensor<40xf32>) -> tensor<1x40xf32>
  %sum = dm.add %column, %row : (tensor<48x1xf32>, tensor<1x40xf32>) -> !d
  %slope = dm.constant dense<0.2> : tensor<f32>
  %low = dm.mul %sum, %slope : (!d, tensor<f32>) -> !d
  %m = dm.max %sum, %low : !d
  %s = dm.sample %csr, %m : (!csr, !d) -> !csr
  %p = dm.softmax %s, dim = 1 : !csr
  %y = dm.matmul %p, %v : (!csr, !v) -> !y
  %z = dm.mul %y, %y : !y
  %l = dm.reduce add %z : (!y) -> tensor<f32>
  return %l : tensor<f32>
}
`

// weightedSums is graph attention whose scores are weighted sums over features of leaky sums of a row of queries and one of keys (GATv2), as a
// sample that sums, as a contraction that is sampled and as a product and a sum, of several heads inside and outside, and its gradient.
const weightedSums = `
!csr = tensor<48x40xf32, #dm.csr<nnz = 300>>
!within = tensor<3x48x40xf32, #dm.sparse<map = (h, i, j) -> (i : dense, j : compressed, h : dense), nnz = 250>>
!apart = tensor<3x48x40xf32, #dm.sparse<map = (h, i, j) -> (h : dense, i : dense, j : compressed), nnz = 500>>
!q = tensor<48x20xf32>
!k = tensor<40x20xf32>
!a = tensor<20xf32>
!d = tensor<48x40x20xf32>
!hq = tensor<3x48x6xf32>
!hk = tensor<3x40x6xf32>
!ha = tensor<3x6xf32>
!hd = tensor<3x48x40x6xf32>

func.func @f(%csr: !csr, %within: !within, %apart: !apart, %q: !q, %k: !k, %a: !a, %hq: !hq, %hk: !hk, %ha: !ha) -> (!q, !hq, !hq, !q, !q, !k, !a, !hq, !hk, !ha) {
  %slope = dm.constant dense<0.2> : tensor<f32>
  %y = func.call @layer(%csr, %q, %k, %a) : (!csr, !q, !k, !a) -> !q

  %column = dm.reshape %hq : (!hq) -> tensor<3x48x1x6xf32>
  %row = dm.reshape %hk : (!hk) -> tensor<3x1x40x6xf32>
  %sum = dm.add %column, %row : (tensor<3x48x1x6xf32>, tensor<3x1x40x6xf32>) -> !hd
  %low = dm.mul %sum, %slope : (!hd, tensor<f32>) -> !hd
  %leaky = dm.max %low, %sum : !hd
  %e = dm.einsum "hc,hijc->hij" %ha, %leaky : (!ha, !hd) -> tensor<3x48x40xf32>
  %s = dm.sample %within, %e : (!within, tensor<3x48x40xf32>) -> !within
  %biased = dm.add %s, %within : !within
  %p = dm.softmax %biased, dim = 2 : !within
  %hy = dm.einsum "hij,hjd->hid" %p, %hk : (!within, !hk) -> !hq

  %outside = func.call @outside(%apart, %hq, %hk, %ha) : (!apart, !hq, !hk, !ha) -> !hq

  %last = dm.broadcast %k : (!k) -> !d
  %first = dm.broadcast %q, dims = [0, 2] : (!q) -> !d
  %both = dm.add %last, %first : !d
  %under = dm.mul %slope, %both : (tensor<f32>, !d) -> !d
  %most = dm.max %both, %under : !d
  %each = dm.mul %most, %a : (!d, !a) -> !d
  %dense = dm.reduce add %each, dims = [2] : (!d) -> tensor<48x40xf32>
  %rs = dm.sample %csr, %dense : (!csr, tensor<48x40xf32>) -> !csr
  %rp = dm.softmax %rs, dim = 1 : !csr
  %ry = dm.matmul %rp, %k : (!csr, !k) -> !q

  %loss, %dq, %dk, %da = dm.grad @loss %csr, %q, %k, %a, wrt = [1, 2, 3] : (!csr, !q, !k, !a) -> (tensor<f32>, !q, !k, !a)
  %hloss, %dhq, %dhk, %dha = dm.grad @outside_loss %apart, %hq, %hk, %ha, wrt = [1, 2, 3] : (!apart, !hq, !hk, !ha) -> (tensor<f32>, !hq, !hk, !ha)
  return %y, %hy, %outside, %ry, %dq, %dk, %da, %dhq, %dhk, %dha : !q, !hq, !hq, !q, !q, !k, !a, !hq, !hk, !ha
}

func.func private @layer(%csr: !csr, %q: !q, %k: !k, %a: !a) -> !q {
  %slope = dm.constant dense<0.2> : tensor<f32>
  %column = dm.reshape %q : (!q) -> tensor<48x1x20xf32>
  %sum = dm.add %column, %k : (tensor<48x1x20xf32>, !k) -> !d
  %low = dm.mul %sum, %slope : (!d, tensor<f32>) -> !d
  %leaky = dm.max %sum, %low : !d
  %s = dm.sample "ijc,c->ij" %csr, %leaky, %a : (!csr, !d, !a) -> !csr
  %p = dm.softmax %s, dim = 1 : !csr
  %y = dm.matmul %p, %k : (!csr, !k) -> !q
  return %y : !q
}

func.func private @outside(%apart: !apart, %q: !hq, %k: !hk, %a: !ha) -> !hq {
  %slope = dm.constant dense<0.2> : tensor<f32>
  %column = dm.reshape %q : (!hq) -> tensor<3x48x1x6xf32>
  %row = dm.reshape %k : (!hk) -> tensor<3x1x40x6xf32>
  %sum = dm.add %column, %row : (tensor<3x48x1x6xf32>, tensor<3x1x40x6xf32>) -> !hd
  %low = dm.mul %sum, %slope : (!hd, tensor<f32>) -> !hd
  %leaky = dm.max %sum, %low : !hd
  %s = dm.sample "hijc,hc->hij" %apart, %leaky, %a : (!apart, !hd, !ha) -> !apart
  %p = dm.softmax %s, dim = 2 : !apart
  %y = dm.einsum "hij,hjd->hid" %p, %k : (!apart, !hk) -> !hq
  return %y : !hq
}

func.func private @loss(%csr: !csr, %q: !q, %k: !k, %a: !a) -> tensor<f32> {
  %y = func.call @layer(%csr, %q, %k, %a) : (!csr, !q, !k, !a) -> !q
  %z = dm.mul %y, %y : !q
  %l = dm.reduce add %z : (!q) -> tensor<f32>
  return %l : tensor<f32>
}

func.func private @outside_loss(%apart: !apart, %q: !hq, %k: !hk, %a: !ha) -> tensor<f32> {
  %y = func.call @outside(%apart, %q, %k, %a) : (!apart, !hq, !hk, !ha) -> !hq
  %z = dm.mul %y, %y : !hq
  %l = dm.reduce add %z : (!hq) -> tensor<f32>
  return %l : tensor<f32>
}
`

// Attention to what sparse tensors store is one kernel that computes what the reference does, op by op.
func TestStoredAttention(t *testing.T) {
	need.Long(t)
	needEmulator(t)
	needCPU(t)
	var cases []Case
	for _, p := range []struct {
		name, text string
		kernels    int
	}{{"products and sums", storedAttention, 9}, {"outer sums", outerSums, 3}, {"weighted sums", weightedSums, 5 /* of six, two of which are the same */}} {
		c := Case{Name: p.name, Text: p.text, Seed: 3}
		kernels := 0
		for _, k := range built(t, c).built.Kernels {
			if strings.HasPrefix(k.Class, "segment_attention") {
				kernels++
			}
		}
		if kernels != p.kernels {
			t.Errorf("%s: %d of %d attentions are one kernel", p.name, kernels, p.kernels)
		}
		cases = append(cases, c, Case{Name: p.name + " on the processor", Text: p.text, Seed: 3, Device: "cpu"})
	}
	agree(t, cases)
}
