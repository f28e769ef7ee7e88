// The kernels as plain functions, for tests that compare them with numpy.
#include "cuda_shim.h"

extern "C" void run_kv_scatter(unsigned grid, unsigned block, const Byte* slab, Offset slab_bytes, Byte* destination,
                               Offset destination_bytes, const Span* spans, Word rows, Word alignment, Status* status) {
  launch(grid, block, [&] { kv_scatter(slab, slab_bytes, destination, destination_bytes, spans, rows, alignment, status); });
}

extern "C" void run_kv_page_digest(unsigned grid, unsigned block, const Byte* destination, Offset destination_bytes, const Page* pages,
                                   Word rows, Offset seed_low, Offset seed_high, Offset* digests, Status* status) {
  launch(grid, block, [&] { kv_page_digest(destination, destination_bytes, pages, rows, seed_low, seed_high, digests, status); });
}
