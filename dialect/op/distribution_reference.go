package op

// introductions stand on the reference page before the ops of a family.
var introductions = map[Family]string{Distribution: shardingReference}

const shardingReference = `A program for many devices is written in one of two forms, and ` + "`dmir opt --passes partition`" + ` leads from the first to the second:

- a **global** function: values have the shapes of the whole, and placements state how their pieces lie on a mesh. It needs no collectives;
- a **per-device** function, with the attribute ` + "`dm.mesh = @pod`" + `: every device of the mesh runs it on its own pieces, and collectives move data. ` + "`dm.global = tensor<…>`" + `
  of an argument or a result is the type, with its sharding, of the whole that it is a piece of.

A step in stages (` + "`dm.pipeline`" + `) becomes, by ` + "`dmir opt --passes …,pipeline`" + `, a function for each position along the axis of its pipeline, with the attribute
` + "`dm.only = [@pod, {pipe = 2}]`" + `: the devices of that position run it, and ` + "`dm.send`" + ` and ` + "`dm.recv`" + ` move values, whole ones until the function is made per-device, between it and those of
other positions. The two have the same channel, which no other value has; a send waits for nothing. ` + "`dm.task = \"2F0\"`" + ` of an op is the task of the schedule in which it runs: the stage, F, B or W (forward, backward,
gradients of weights), and the micro-batch. Ops without one run before the first task, or behind the last, or are computed on each device that uses them.

**Shardings** are parts of a placement: ` + "`tensor<512x1024xf16, #dm.at<split = @pod[{data}, {model:(2)4, ?}], partial = max{x}>>`" + `.

- ` + "`split = @pod[…]`" + ` names the mesh and has, for each dimension, the axes that it is divided over, the outermost first: the number of a piece counts the devices of the last axis fastest.
  ` + "`{}`" + ` is a dimension that is whole on each device.
- ` + "`partial = {x}`" + ` stands behind it: each device along the axis x holds a part, and the sum of the parts is the value. ` + "`max{x}`" + ` and the like name another reduction: ` + "`add mul max min and or`" + `.
- An axis that is named nowhere holds copies. An axis stands in a sharding once.
- ` + "`model:(2)4`" + ` is a part of an axis (a sub-axis): its n devices are seen as 2 × 4 × n/8, the outermost first, and the part is the 4 in the middle.
- ` + "`?`" + ` at the end of a dimension leaves it open: propagation may add axes behind those written. Without it the dimension stays as it is written. A placement without ` + "`split`" + ` leaves everything to propagation.
- ` + "`dm.sharding = #dm.at<split = @pod[{data}, {}]>`" + ` states a sharding where the type states none, and means the same: in the dictionary of an argument, ` + "`%x: tensor<8x4xf32> {dm.sharding = …}`" + `, of a
  result of a function, or of an op or a call, for its result. Types, and the lines that use the value, stay as they are. Of an op with several results it is an array with an entry for each, of a tuple one with an
  entry for each member (a nested array for a tuple); ` + "`unit`" + ` stands for one of which nothing is stated. A result with ` + "`dm.state`" + ` that states none is divided as its argument. The pass ` + "`shard`" + ` writes it into the type.
- **Padding.** A dimension of n over p devices has pieces of ⌈n/p⌉; where p does not divide n the last pieces end in padding, or are only that. 10 over 4 is 3, 3, 3 and 1 + 2 of padding. Padding is
  no part of the value: what combines elements across it takes the neutral element of its reduction in its place, and it never reaches a result.

| here | Shardy | OneFlow |
|---|---|---|
| ` + "`dm.mesh @pod {x = 2, y = 4}`" + ` | ` + "`sdy.mesh @pod = <[\"x\"=2, \"y\"=4]>`" + ` | placement with the hierarchy [2, 4] |
| ` + "`split = @pod[{x}, {}]`" + ` | ` + "`#sdy.sharding<@pod, [{\"x\"}, {}]>`" + ` | S(0) along x, B along y |
| ` + "`split = @pod[{x, y}, {}]`" + ` | ` + "`[{\"x\", \"y\"}, {}]`" + ` | S(0), S(0) |
| ` + "`split = @pod[{}, {}]`" + ` | ` + "`[{}, {}]`" + `; ` + "`replicated={\"x\", \"y\"}`" + ` keeps propagation from using the axes, as closed dimensions do here | B, B |
| ` + "`split = @pod[{}, {}], partial = {y}`" + ` | ` + "`[{}, {}], unreduced={\"y\"}`" + ` | B along x, P(sum) along y |
| ` + "`partial = max{y}`" + ` | none: its unreduced values are sums | P(max) |
| ` + "`{y:(1)2}`" + ` | ` + "`{\"y\":(1)2}`" + ` | none |
| ` + "`{x, ?}`" + `, ` + "`{?}`" + ` | ` + "`{\"x\", ?}`" + `, ` + "`{?}`" + ` | none |

**Cost.** Figures of such a function are those of one device: ` + "`dmir cost`" + ` divides it as the compiler does, and each line has the sum of the ops made of it. An exchange counts at the line that needs
the value in another sharding.

| term | definition |
|---|---|
| sent | bytes that leave a device, by axes of the mesh; the mean of a group where its devices send differently. With T bytes in a group of p devices (of the operand; of an all-gather the result): all-reduce 2·T·(p-1)/p, reduce-scatter, all-gather and all-to-all T·(p-1)/p, a permutation T for each pair of p, a send T/p |
| time of a collective | the fastest of ring, tree and hierarchical forms on the links that its axes cross (Patarasuk and Yuan 2009; Thakur, Rabenseifner and Gropp 2005; NCCL's double binary trees), and no less than its operands and results take in memory |
| time of the function | kernels run in the order of the text, collectives on a stream of their own as soon as what they use is there: the end of the later of the two |
| exposed | the time of collectives in which no kernel runs |
| peak | of one device, pieces and what is gathered included |

**Stages and micro-batches.** Attributes divide a training step, and leave its types as they are:

| attribute | of | meaning |
|---|---|---|
| ` + "`dm.stage = 2`" + ` | an op, a call | the op and those after it in the text of its function, until the next one with ` + "`dm.stage`" + `, belong to stage 2. Stages are numbered from 0 along the model and do not go back. The ops of an inlined call have its stage unless they have their own; a derivative op has that of the op that it is the derivative of, the sum of what flows back to a value that of the value's op. Ops with none are of the latest stage among those of their operands |
| ` + "`dm.recompute`" + ` | an op, a call | what the op computes, and what a call computes but for its results, is not kept for the derivative but computed again there from what it reads (Chen et al., *Training Deep Nets with Sublinear Memory Cost*, arXiv 1604.06174). Ops with a seed draw the same numbers. Each iteration of a loop is computed again in any case (see ` + "`dm.scan`" + `), so that it changes nothing inside of one |
| ` + "`dm.regather`" + ` | an argument that is stored in pieces | what devices gather of it for the forward pass of a micro-batch is freed behind that, and gathered again for the backward pass (ZeRO-3: Rajbhandari et al., arXiv 1910.02054). Of a tuple it may be a list of booleans, one for each tensor. One device does nothing for it |
| ` + "`dm.microbatches = 8 : i64`" + ` | a function | the batch is cut into 8 parts, whose gradients are summed |
| ` + "`dm.pipeline = \"pipe\"`" + ` | a function | the axis along which the stages lie, of the mesh that divides its values or of the only one: stage s on device s mod p of p; for zb-v stage s ≥ p on device 2·p - 1 - s |
| ` + "`dm.schedule = \"1f1b\"`" + ` | a function | the order of work in the pipeline: gpipe, 1f1b, interleaved, zb-h1, zb-v |

The compiler writes further ones: ` + "`dm.backward`" + ` on the ops that differentiation adds to a function with stages or with ` + "`dm.regather`" + `, ` + "`dm.regathered = 0`" + ` with a number of its own on each gathering of an argument that has this, ` + "`dm.recomputed`" + ` on those that compute something again, which are equal to no op without it, and ` + "`dm.recompute = 1`" + ` with the number of the call on the ops of an inlined one.

Sources: Shardy, the MLIR dialect ` + "`sdy`" + ` of OpenXLA; Yuan et al., *OneFlow: Redesign the Distributed Deep Learning Framework from Scratch*, arXiv 2110.15032.
`
