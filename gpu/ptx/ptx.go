// Package ptx reads PTX, the assembly that NVRTC writes, and checks kernels by the
// rules of the asynchronous parts of a GPU: proxies, mbarriers, bulk copies, cp.async,
// wgmma, registers and barriers of threads. [Rules] lists them; docs/PTX.md says what
// they cover.
//
// [Check] follows the first and the last block of each launch. Every warp runs through
// its own control flow, 32 threads at once, with the values of integers: constants,
// numbers of threads and blocks, addresses. Data are unknown. Vector clocks say what
// comes before what: of each warp, its cp.async, its wgmma, its bulk stores, and the
// bulk copies of each mbarrier; four bytes of shared memory each know who wrote and read
// them last. So an order that one run happens to have hides nothing. Where a branch
// depends on data both sides are followed, and what is not known is counted in the
// [Report], never reported as a finding.
//
// [Run] executes a kernel of one block on values, for tests that compare the prelude's
// inline assembly with the C++ that the emulator has for it.
package ptx
