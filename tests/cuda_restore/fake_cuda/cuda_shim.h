// Just enough of CUDA C++ for a host compiler to accept kv_scatter.cu unchanged. Blocks and threads run one after another, which
// is legal for kernels without barriers.
#pragma once
#include <cstdint>

#define __global__
#define __device__
#define __forceinline__ inline

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

struct Index {
  unsigned x, y, z;
};
static thread_local Index blockIdx, threadIdx, blockDim, gridDim;

template <class T>
static T atomicAdd(T* address, T value) {
  return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}

template <class T>
static T atomicCAS(T* address, T expected, T desired) {
  __atomic_compare_exchange_n(address, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}

#include "kv_scatter.cu"

template <class Kernel>
static void launch(unsigned grid, unsigned block, Kernel kernel) {
  gridDim.x = grid;
  blockDim.x = block;
  for (blockIdx.x = 0; blockIdx.x < grid; blockIdx.x++) {
    for (threadIdx.x = 0; threadIdx.x < block; threadIdx.x++) kernel();
  }
}
