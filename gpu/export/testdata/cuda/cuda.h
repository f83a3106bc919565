// The part of CUDA's driver that exported files call.
#pragma once
#include <cstdint>
#include <cstdio>

typedef uint64_t cuuint64_t;
typedef uint32_t cuuint32_t;
struct CUtensorMap {
  void *base;
};
enum CUtensorMapDataType { CU_TENSOR_MAP_DATA_TYPE_FLOAT32 = 7 };
enum CUtensorMapSwizzle { CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_128B };
enum { CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0, CUDA_SUCCESS = 0 };

inline int cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *base, const cuuint64_t *dims,
                                  const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps, int, CUtensorMapSwizzle swizzle,
                                  int, int) {
  std::printf("map of %s type %d swizzle %d:", place(base), type, swizzle);
  for (cuuint32_t i = 0; i < rank; i++)
    std::printf(" %llu/%u step %u stride %llu", (unsigned long long)dims[i], box[i], steps[i], i ? (unsigned long long)strides[i - 1] : 0);
  std::printf("\n");
  map->base = base;
  return CUDA_SUCCESS;
}
