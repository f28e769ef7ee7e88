// The two kernels of the restore engine, in plain CUDA C++ without a header, so that NVRTC, nvcc and a host compiler with a
// small shim accept the same text. Tests hold both to be equal to numpy, byte for byte.
//
// Both kernels work for any grid and any block: rows are taken with a grid stride, bytes with a block stride, and nothing waits
// on a barrier.

typedef unsigned char Byte;
typedef unsigned int Word;
typedef unsigned long long Offset;

// One row of the span table: 24 bytes, little-endian, offsets from the start of the slab and of the destination.
struct Span {
  Offset source;
  Offset destination;
  Offset bytes;
};

// One row of the page table: which bytes of the destination are one page.
struct Page {
  Offset start;
  Offset bytes;
};

// What the kernels report. The host reads it after the last launch; a non-zero error word fails the restore.
struct Status {
  Offset placed_bytes;
  Offset placed_rows;
  Offset rejected_rows;
  Offset error;  // violation << 32 | row of the first rejection that was noticed; 0 means none
};

enum Violation { OUTSIDE_SOURCE = 1, OUTSIDE_DESTINATION = 2, MISALIGNED = 3, EMPTY = 4 };

static __device__ __forceinline__ bool inside(Offset start, Offset bytes, Offset limit) {
  return start <= limit && bytes <= limit - start;  // never adds, so it cannot wrap around
}

static __device__ __forceinline__ void reject(Status* status, Offset violation, Offset row) {
  atomicAdd(&status->rejected_rows, 1ull);
  atomicCAS(&status->error, 0ull, violation << 32 | row);
}

static __device__ __forceinline__ Offset min_offset(Offset a, Offset b) { return a < b ? a : b; }

// Copies with the whole block. Where both addresses agree modulo 16, all but the ragged ends move 16 bytes a thread;
// otherwise every byte moves alone, because a misaligned vector access is an error on a GPU.
static __device__ __forceinline__ void copy_span(const Byte* __restrict__ in, Byte* __restrict__ out, Offset bytes) {
  const Offset misfit = ((Offset)in ^ (Offset)out) & 15;
  const Offset head = misfit ? bytes : min_offset((16 - ((Offset)out & 15)) & 15, bytes);
  const Offset vectors = (bytes - head) >> 4;
  const Offset tail = head + (vectors << 4);
  const uint4* wide_in = (const uint4*)(in + head);
  uint4* wide_out = (uint4*)(out + head);
  for (Offset i = threadIdx.x; i < head; i += blockDim.x) out[i] = in[i];
  for (Offset i = threadIdx.x; i < vectors; i += blockDim.x) wide_out[i] = wide_in[i];
  for (Offset i = tail + threadIdx.x; i < bytes; i += blockDim.x) out[i] = in[i];
}

// `alignment` is what the host promised: every row's source and destination agree modulo this power of two.
extern "C" __global__ void kv_scatter(const Byte* __restrict__ slab, Offset slab_bytes, Byte* __restrict__ destination,
                                      Offset destination_bytes, const Span* __restrict__ spans, Word rows, Word alignment,
                                      Status* __restrict__ status) {
  for (Offset row = blockIdx.x; row < rows; row += gridDim.x) {
    const Span span = spans[row];
    Offset violation = 0;
    if (span.bytes == 0) {
      violation = EMPTY;
    } else if (!inside(span.source, span.bytes, slab_bytes)) {
      violation = OUTSIDE_SOURCE;
    } else if (!inside(span.destination, span.bytes, destination_bytes)) {
      violation = OUTSIDE_DESTINATION;
    } else if ((((Offset)slab + span.source) ^ ((Offset)destination + span.destination)) & (alignment - 1)) {
      violation = MISALIGNED;
    }
    if (!violation) copy_span(slab + span.source, destination + span.destination, span.bytes);
    if (threadIdx.x == 0) {
      if (violation) {
        reject(status, violation, row);
      } else {
        atomicAdd(&status->placed_rows, 1ull);
        atomicAdd(&status->placed_bytes, span.bytes);
      }
    }
  }
}

// splitmix64: the finaliser turns a counter into key material that numpy derives in the same way.
static __device__ __forceinline__ Offset digest_key(Offset seed, Offset index) {
  Offset x = seed + 0x9e3779b97f4a7c15ull * (index + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return (x ^ (x >> 31)) | 1;
}

// The 32-bit little-endian word at `index`; what lies behind the end of the page counts as zero.
static __device__ __forceinline__ Word page_word(const Byte* page, Offset bytes, Offset index) {
  const Offset at = index << 2;
  if (at + 4 <= bytes && (((Offset)page) & 3) == 0) return ((const Word*)page)[index];
  Word word = 0;
  for (Offset i = at; i < min_offset(at + 4, bytes); i++) word |= (Word)page[i] << (8 * (i - at));
  return word;
}

// Two 64-bit multilinear hashes of every page: key(0) * bytes + sum of key(1 + i) * word(i), modulo 2^64. A sum does not depend
// on the order of the threads, so each adds its share to `digests` (two words a page, zeroed by the host).
extern "C" __global__ void kv_page_digest(const Byte* __restrict__ destination, Offset destination_bytes,
                                          const Page* __restrict__ pages, Word rows, Offset seed_low, Offset seed_high,
                                          Offset* __restrict__ digests, Status* __restrict__ status) {
  for (Offset row = blockIdx.x; row < rows; row += gridDim.x) {
    const Page page = pages[row];
    if (!inside(page.start, page.bytes, destination_bytes)) {
      if (threadIdx.x == 0) reject(status, OUTSIDE_DESTINATION, row);
      continue;
    }
    const Byte* bytes = destination + page.start;
    const Offset words = (page.bytes >> 2) + ((page.bytes & 3) != 0);
    Offset low = threadIdx.x ? 0 : digest_key(seed_low, 0) * page.bytes;
    Offset high = threadIdx.x ? 0 : digest_key(seed_high, 0) * page.bytes;
    for (Offset i = threadIdx.x; i < words; i += blockDim.x) {
      const Offset word = page_word(bytes, page.bytes, i);
      low += digest_key(seed_low, i + 1) * word;
      high += digest_key(seed_high, i + 1) * word;
    }
    atomicAdd(&digests[2 * row], low);
    atomicAdd(&digests[2 * row + 1], high);
  }
}
