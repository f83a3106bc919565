#!/usr/bin/env python3
"""Writes ort_cases.zip: models of one or two nodes, their inputs, and the results that
ONNX Runtime computes, or ONNX's reference implementation where that has no kernel, laid
out as ONNX's own test cases are.

Run with: python3 ort_cases.py   (needs numpy, onnx and onnxruntime)
"""
import os
import zipfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

R = np.random.RandomState(1)
N = helper.make_node
M = "com.microsoft"
onnxruntime.set_default_logger_severity(4)
archive = zipfile.ZipFile(os.path.join(os.path.dirname(os.path.abspath(__file__)), "ort_cases.zip"), "w", zipfile.ZIP_DEFLATED)


def put(name, data):
    info = zipfile.ZipInfo(name)  # of a fixed date
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, data)


def f(*shape):
    return R.randn(*shape).astype("f4")


def check(name, nodes, feeds, constants, outs=("y",), opset=18, reference=False, finish=lambda a: a):
    inputs = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feeds.items()]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name=o) for o in outs], [numpy_helper.from_array(np.array(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(M, 1)], ir_version=10)
    data = model.SerializeToString()
    if reference:
        want = ReferenceEvaluator(model).run(None, feeds)
    else:
        want = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feeds)
    want = [finish(a) for a in want]
    name = "test_" + name.lower().replace(" ", "_")
    put(name + "/model.onnx", data)
    for kind, arrays in (("input", feeds.values()), ("output", want)):
        for i, a in enumerate(arrays):
            put(f"{name}/test_data_set_0/{kind}_{i}.pb", numpy_helper.from_array(a, "").SerializeToString())


def mha():
    B,S,L,H,Dm=2,3,5,2,8
    base=dict(q=f(B,S,Dm),k=f(B,L,Dm),v=f(B,L,Dm))
    check('mha',[N('MultiHeadAttention',['q','k','v'],['y'],domain=M,num_heads=H)],base,{})
    check('mha bias',[N('MultiHeadAttention',['q','k','v','b'],['y'],domain=M,num_heads=H)],base,{'b':f(3*Dm)})
    check('mha mask2',[N('MultiHeadAttention',['q','k','v','','m'],['y'],domain=M,num_heads=H)],base,{'m':np.array([[1,1,1,0,0],[1,1,1,1,0]],'i4')})
    check('mha mask1',[N('MultiHeadAttention',['q','k','v','','m'],['y'],domain=M,num_heads=H)],base,{'m':np.array([3,4],'i4')})
    check('mha ab',[N('MultiHeadAttention',['q','k','v','','','a'],['y'],domain=M,num_heads=H,scale=0.3)],{**base,'a':f(B,H,S,L)},{})
    check('mha past',[N('MultiHeadAttention',['q','k','v','','','','pk','pv'],['y','ok','ov'],domain=M,num_heads=H)],{**base,'k':f(B,S,Dm),'v':f(B,S,Dm),'pk':f(B,H,4,4),'pv':f(B,H,4,4)},{},('y','ok','ov'))
    check('mha uni',[N('MultiHeadAttention',['q','k','v'],['y'],domain=M,num_heads=H,unidirectional=1)],{'q':f(B,S,Dm),'k':f(B,S,Dm),'v':f(B,S,Dm)},{})
    check('att',[N('Attention',['x','w','b'],['y'],domain=M,num_heads=H)],{'x':f(B,S,Dm)},{'w':f(Dm,3*Dm),'b':f(3*Dm)})
    check('att uni mask',[N('Attention',['x','w','b','m'],['y'],domain=M,num_heads=H,unidirectional=1)],{'x':f(B,S,Dm)},{'w':f(Dm,3*Dm),'b':f(3*Dm),'m':np.array([[1,1,0],[1,1,1]],'i4')})
def gqa():
    B,S,Hq,Hk,D=2,3,4,2,16
    for do,inter in ((0,0),(1,0),(1,1)):
      for P,sl in ((0,[2,2]),):
        check(f'gqa prompt rot{do}{inter}',[N('GroupQueryAttention',['q','k','v','','','sl','t','c','s'],['y','pk','pv'],domain=M,num_heads=Hq,kv_num_heads=Hk,do_rotary=do,rotary_interleaved=inter)],
          {'q':f(B,S,Hq*D),'k':f(B,S,Hk*D),'v':f(B,S,Hk*D)},{'sl':np.array(sl,'i4'),'t':np.array([3],'i4'),'c':f(20,D//2),'s':f(20,D//2)},('y','pk','pv'))
      check(f'gqa token rot{do}{inter}',[N('GroupQueryAttention',['q','k','v','k0','v0','sl','t','c','s'],['y','pk','pv'],domain=M,num_heads=Hq,kv_num_heads=Hk,do_rotary=do,rotary_interleaved=inter)],
          {'q':f(B,1,Hq*D),'k':f(B,1,Hk*D),'v':f(B,1,Hk*D),'k0':f(B,Hk,5,D),'v0':f(B,Hk,5,D)},{'sl':np.array([5,5],'i4'),'t':np.array([6],'i4'),'c':f(20,D//2),'s':f(20,D//2)},('y','pk','pv'))
    check(f'gqa token uneven',[N('GroupQueryAttention',['q','k','v','k0','v0','sl','t'],['y','pk','pv'],domain=M,num_heads=Hq,kv_num_heads=Hk)],
          {'q':f(B,1,Hq*D),'k':f(B,1,Hk*D),'v':f(B,1,Hk*D),'k0':f(B,Hk,5,D),'v0':f(B,Hk,5,D)},{'sl':np.array([5,3],'i4'),'t':np.array([6],'i4')},('y',))
    check(f'gqa window cap',[N('GroupQueryAttention',['q','k','v','','','sl','t'],['y','pk','pv'],domain=M,num_heads=Hq,kv_num_heads=Hk,local_window_size=2,softcap=5.0)],
          {'q':f(1,6,Hq*D),'k':f(1,6,Hk*D),'v':f(1,6,Hk*D)},{'sl':np.array([5],'i4'),'t':np.array([6],'i4')},('y',))
    check(f'gqa packed',[N('GroupQueryAttention',['q','','','','','sl','t'],['y','pk','pv'],domain=M,num_heads=Hq,kv_num_heads=Hk,scale=0.2)],
          {'q':f(1,6,(Hq+2*Hk)*D)},{'sl':np.array([5],'i4'),'t':np.array([6],'i4')},('y',))
    check('gqa chunk',[N('GroupQueryAttention',['q','k','v','k0','v0','sl','t'],['y','pk','pv'],domain=M,num_heads=Hq,kv_num_heads=Hk)],
          {'q':f(1,3,Hq*D),'k':f(1,3,Hk*D),'v':f(1,3,Hk*D),'k0':f(1,Hk,5,D),'v0':f(1,Hk,5,D)},{'sl':np.array([7],'i4'),'t':np.array([8],'i4')},('y','pk','pv'))
def nb():
    for bits,bs,K,Nn in ((4,16,32,5),(4,32,40,3),(8,16,32,5),(2,16,32,4)):
        nb=(K+bs-1)//bs
        b=R.randint(0,256,(Nn,nb,bs*bits//8)).astype('u1'); sc=f(Nn,nb)
        for z in (0,1):
            i={'b':b,'s':sc.reshape(-1)}; ins=['a','b','s']
            if z: i['z']=R.randint(0,256,Nn*((nb*bits+7)//8)).astype('u1'); ins.append('z')
            check(f'nbits {bits} {bs} {K} z{z}',[N('MatMulNBits',ins,['y'],domain=M,K=K,N=Nn,bits=bits,block_size=bs,accuracy_level=0)],{'a':f(2,3,K)},i)
    i={'b':b,'s':sc}
def fc():
    for act,pr in (('Relu',None),('Tanh',None),('Sigmoid',None),('LeakyRelu',[0.2]),('Clip',[-0.5,0.5]),('HardSigmoid',[0.3,0.4])):
        a=dict(activation=act,pads=[1,1,1,1]); 
        if pr: a['activation_params']=pr
        check(f'fusedconv {act}',[N('FusedConv',['x','w','b'],['y'],domain=M,**a)],{'x':f(1,2,5,5)},{'w':f(3,2,3,3),'b':f(3)})
    check('fusedconv z',[N('FusedConv',['x','w','b','z'],['y'],domain=M,activation='Relu')],{'x':f(1,2,5,5),'z':f(1,3,3,3)},{'w':f(3,2,3,3),'b':f(3)})
    check('fusedgemm',[N('FusedGemm',['a','b','c'],['y'],domain=M,activation='LeakyRelu',activation_alpha=0.3,transB=1)],{'a':f(2,3)},{'b':f(4,3),'c':f(4)})
def ql():
    for dt in ('u1','i1'):
        lo,hi=(0,256) if dt=='u1' else (-128,128)
        r=lambda *s: R.randint(lo,hi,s).astype(dt)
        s=lambda v: np.array(v,'f4'); z=lambda v: np.array(v,dt)
        for o in ('QLinearAdd','QLinearMul'):
            check(f'{o} {dt}',[N(o,['a','as','az','b','bs','bz','cs','cz'],['y'],domain=M)],{'a':r(3,4),'b':r(4)},{'as':s(.03),'az':z(5),'bs':s(.02),'bz':z(7),'cs':s(.05),'cz':z(3)})
        check(f'QLSig {dt}',[N('QLinearSigmoid',['a','as','az','cs','cz'],['y'],domain=M)],{'a':r(3,4)},{'as':s(.03),'az':z(5),'cs':s(.01),'cz':z(3)})
        check(f'QLLeaky {dt}',[N('QLinearLeakyRelu',['a','as','az','cs','cz'],['y'],domain=M,alpha=.1)],{'a':r(3,4)},{'as':s(.03),'az':z(5),'cs':s(.03),'cz':z(3)})
        check(f'QLGap {dt}',[N('QLinearGlobalAveragePool',['a','as','az','cs','cz'],['y'],domain=M)],{'a':r(1,3,4,4)},{'as':s(.03),'az':z(5),'cs':s(.01),'cz':z(3)})
        check(f'QLConcat {dt}',[N('QLinearConcat',['cs','cz','a','as','az','b','bs','bz'],['y'],domain=M,axis=1)],{'a':r(2,3),'b':r(2,2)},{'as':s(.03),'az':z(5),'bs':s(.02),'bz':z(7),'cs':s(.05),'cz':z(3)})
    check('QGemm',[N('QGemm',['a','as','az','b','bs','bz','c','ys','yz'],['y'],domain=M,transB=1)],{'a':R.randint(0,256,(2,4)).astype('u1')},{'as':s(.03),'az':np.array(5,'u1'),'b':R.randint(-128,128,(3,4)).astype('i1'),'bs':s(.02),'bz':np.array(0,'i1'),'c':R.randint(-50,50,(3,)).astype('i4'),'ys':s(.3),'yz':np.array(100,'u1')})
    check('MatMulIntegerToFloat',[N('MatMulIntegerToFloat',['a','b','as','bs','az','bz','c'],['y'],domain=M)],{'a':R.randint(0,256,(2,4)).astype('u1')},{'b':R.randint(0,256,(4,3)).astype('u1'),'as':s(.03),'bs':s(.02),'az':np.array(5,'u1'),'bz':np.array(9,'u1'),'c':f(3)})
    check('DynQMM',[N('DynamicQuantizeMatMul',['a','b','bs','bz','c'],['y'],domain=M)],{'a':f(2,4)},{'b':R.randint(0,256,(4,3)).astype('u1'),'bs':s(.02),'bz':np.array(9,'u1'),'c':f(3)})
def nm():
    check('skipsimpl',[N('SkipSimplifiedLayerNormalization',['x','s','g','b'],['y','','','z'],domain=M,epsilon=1e-5)],{'x':f(2,3,8),'s':f(2,3,8)},{'g':f(8),'b':f(8)},('y',))
    check('simpl',[N('SimplifiedLayerNormalization',['x','g'],['y'],epsilon=1e-5,axis=-1,stash_type=1)],{'x':f(2,3,8)},{'g':f(8)})
    check('rot',[N('RotaryEmbedding',['x','p','c','s'],['y'],domain=M)],{'x':f(2,2,3,8)},{'p':np.array([[0,1,2],[3,4,5]]),'c':f(10,4),'s':f(10,4)})
    check('rot off',[N('RotaryEmbedding',['x','p','c','s'],['y'],domain=M,interleaved=1)],{'x':f(2,3,16)},{'p':np.array([2]),'c':f(10,4),'s':f(10,4)})
    check('emb',[N('EmbedLayerNormalization',['i','g','w','p','s','ga','be','m'],['y','mi'],domain=M,epsilon=1e-5)],{'i':R.randint(0,9,(2,4)).astype('i4'),'g':R.randint(0,2,(2,4)).astype('i4'),'m':np.array([[1,1,1,0],[1,1,0,0]],'i4')},{'w':f(9,8),'p':f(6,8),'s':f(2,8),'ga':f(8),'be':f(8)},('y','mi'))
def grid():
    for mode in ('linear','nearest','cubic'):
      for pad in ('zeros','border','reflection'):
        for al in (0,1):
          check(f'grid2 {mode} {pad} {al}',[N('GridSample',['x','g'],['y'],mode=mode,padding_mode=pad,align_corners=al)],{'x':f(2,3,4,5),'g':(f(2,3,4,2)*1.3)},{},opset=20)
          if mode!='cubic': check(f'grid3 {mode} {pad} {al}',[N('GridSample',['x','g'],['y'],mode=mode,padding_mode=pad,align_corners=al)],{'x':f(1,2,3,4,5),'g':(f(1,2,3,4,3)*1.3)},{},opset=20)
    check('grid16',[N('GridSample',['x','g'],['y'],mode='bilinear')],{'x':f(2,3,4,5),'g':f(2,3,4,2)},{},opset=16)
def roi():
    rois=np.array([[0.5,0.7,6.2,5.1],[1,1,3,3],[-2,-1,9,12],[4,4,4.1,4.2]],'f4'); b=np.array([0,1,0,1])
    for mode in ('avg','max'):
      for ct in ('half_pixel','output_half_pixel'):
        for sr in (1,2,3):
          check(f'roi {mode} {ct} {sr}',[N('RoiAlign',['x','r','b'],['y'],mode=mode,coordinate_transformation_mode=ct,sampling_ratio=sr,output_height=3,output_width=2,spatial_scale=0.9)],{'x':f(2,3,8,7),'r':rois},{'b':b},opset=16)
    check('roi10',[N('RoiAlign',['x','r','b'],['y'],sampling_ratio=2,output_height=3,output_width=2)],{'x':f(2,3,8,7),'r':rois},{'b':b},opset=10)
    r5=np.array([[0,0,0,3,3],[1,1,2,6,5],[0,2.4,1.6,5.5,7.2],[1,5,5,20,20]],'f4')
    for sc in (1.,.5): check(f'maxroi {sc}',[N('MaxRoiPool',['x','r'],['y'],pooled_shape=[2,3],spatial_scale=sc)],{'x':f(2,3,8,7),'r':r5},{},opset=16)
def deform():
    for g,og,st,pd,dl in ((1,1,1,0,1),(2,1,2,1,1),(1,2,1,1,2),(2,2,1,1,1)):
        oh=(6+2*pd-dl*2-1)//st+1; ow=(7+2*pd-dl*2-1)//st+1
        check(f'deform {g}{og}{st}{pd}{dl}',[N('DeformConv',['x','w','o','b','m'],['y'],group=g,offset_group=og,strides=[st,st],pads=[pd]*4,dilations=[dl,dl])],
          {'x':f(2,4,6,7),'o':f(2,og*18,oh,ow),'m':f(2,og*9,oh,ow)},{'w':f(4,4//g,3,3),'b':f(4)},opset=22)
def rest():
    x=f(1,2,4,6)
    check('unpool',[N('MaxPool',['x'],['p','i'],kernel_shape=[2,2],strides=[2,2]),N('MaxUnpool',['p','i'],['y'],kernel_shape=[2,2],strides=[2,2])],{'x':x},{})
    check('col2im',[N('Col2Im',['x','s','b'],['y'],pads=[1,0,1,1],strides=[1,2],dilations=[1,1])],{'x':f(1,2*6,4*3) },{'s':np.array([3,6]) ,'b':np.array([2,3])})
    for n in ('AffineGrid',):
      for al in (0,1):
        check(f'affine {al}',[N(n,['t','s'],['y'],align_corners=al)],{'t':f(2,2,3)},{'s':np.array([2,3,4,5])},opset=20)
        check(f'affine3 {al}',[N(n,['t','s'],['y'],align_corners=al)],{'t':f(2,3,4)},{'s':np.array([2,3,4,5,6])},opset=20)
    for inv,one in ((0,0),(0,1),(1,0)):
      for op in (17,20):
        ins=['x','l']+(['a'] if op==20 else []); at=dict(inverse=inv,onesided=one); i={'l':np.array(10),'three':np.array(3,'f4')}
        if op==20: i['a']=np.array(1)
        else: at['axis']=1
        check(f'dft {inv}{one} {op}',[N('DFT',ins,['z'],**at),N('Add',['z','three'],['y'])],{'x':f(2,8,3,1 if one else 2)},i,opset=op)  # the sum hides what is left of 0
    check('stft',[N('STFT',['x','st','w'],['z']),N('Add',['z','three'],['y'])],{'x':f(2,32,1)},{'three':np.array(3,'f4'),'st':np.array(5),'w':f(8)},opset=17)
    check('mel',[N('MelWeightMatrix',['a','b','c','d','e'],['y'])],{},{'a':np.array(8),'b':np.array(64),'c':np.array(8000),'d':np.array(0.,'f4'),'e':np.array(4000.,'f4')},opset=17)
def other():
    for size in (8, 9, 10):
        for auto in ("NOTSET", "SAME_UPPER", "SAME_LOWER"):
            check(f"transposed {size} {auto}", [N("ConvTranspose", ["x", "w"], ["y"], strides=[2], output_shape=[size], auto_pad=auto)], {"x": f(1, 2, 4)}, {"w": f(2, 3, 3)})
    for window in (dict(left_window_size=1), dict(left_window_size=2, right_window_size=1), dict(left_window_size=1, is_causal=1), dict(right_window_size=0)):
        name = " ".join(f"{k} {v}" for k, v in window.items())
        check(f"attention {name}", [N("Attention", ["q", "k", "v"], ["y"], **window)], {"q": f(1, 2, 5, 4), "k": f(1, 2, 7, 4), "v": f(1, 2, 7, 4)}, {}, opset=25)
    x = np.array([-200, -9, -8, -1, 0, 7, 8, 9, 15, 16, 23, 200], "i4")
    for to in (T.INT4, T.UINT4):
        check(f"cast to {to}", [N("Cast", ["x"], ["a"], to=to), N("Cast", ["a"], ["y"], to=T.INT32)], {"x": x}, {}, opset=21)


def steps():
    batch, tokens, heads, shared, depth, values = 2, 5, 4, 2, 3, 6
    for rule in ("linear", "gated", "delta", "gated_delta"):
        for rows in (False, True):
            ins = {"q": f(batch, tokens, heads * depth), "k": f(batch, tokens, shared * depth), "v": f(batch, tokens, shared * values), "s": f(batch, shared, depth, values)}
            if "gated" in rule:
                ins["d"] = -abs(f(batch, tokens, shared * (depth if rows else 1)))
            if "delta" in rule:
                ins["b"] = abs(f(batch, tokens, 1 if rows else shared)) * np.float32(0.3)
            names = ["q", "k", "v", "s" if rows else "", "d" if "d" in ins else "", "b" if "b" in ins else ""]
            if not rows:
                del ins["s"]
            check(f"linear attention {rule} {rows}", [N("LinearAttention", names, ["y", "p"], q_num_heads=heads, kv_num_heads=shared, update_rule=rule, **({"scale": 0.7} if rows else {}))], ins, {}, ("y", "p"), opset=27, reference=True)
    for shape in ((3, 3), (1, 1), (2, 3, 4, 4), (2, 7, 7)):
        check(f"det {len(shape)} {shape[-1]}", [N("Det", ["x"], ["y"])], {"x": f(*shape)}, {}, opset=22)
    check("det singular", [N("Det", ["x"], ["y"])], {"x": np.array([[[1, 2], [2, 4]], [[0, 1], [1, 0]], [[0, 0], [0, 3]]], "f4")}, {}, opset=22)
    for center in (0, 1):
        for threshold in (None, 0.2):
            for most in (3, 50):
                corners = np.sort(R.rand(2, 12, 2, 2).astype("f4"), 2)  # of two corners y, x
                corners[0, :6] = corners[0, 0] + 0.05 * f(6, 2, 2)
                boxes = corners.reshape(2, 12, 4)
                if center:
                    (y0, x0), (y1, x1) = corners[:, :, 0].transpose(2, 0, 1), corners[:, :, 1].transpose(2, 0, 1)
                    boxes = np.stack([(x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0], 2).astype("f4")
                bound = 2 * 3 * min(most, 12)  # the rows that dmir gives: those that are left are -1
                pad = lambda a: np.concatenate([a, np.full((bound - len(a), 3), -1)])
                ins = ["b", "s", "m", "o"] + (["t"] if threshold else [])
                constants = {"m": np.array([most]), "o": np.array([0.3], "f4")}
                if threshold:
                    constants["t"] = np.array([threshold], "f4")
                check(f"nms {center} {threshold} {most}", [N("NonMaxSuppression", ins, ["y"], center_point_box=center)], {"b": boxes, "s": R.rand(2, 3, 12).astype("f4")}, constants, opset=11, finish=pad)


for group in (mha, gqa, nb, fc, ql, nm, grid, roi, deform, rest, other, steps):
    group()
archive.close()
