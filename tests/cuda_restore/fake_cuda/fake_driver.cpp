// A libcuda.so.1 for tests, never shipped: the entry points that the CUDA device uses, over host memory, with the kernels of
// kv_scatter.cu. Streams are lazy, so work runs when something waits for it; FAKE_CUDA_ORDER=eager runs it at once.
//
// FAKE_CUDA_FAIL=N     the Nth call since fake_cuda_reset() fails with CUDA_ERROR_ILLEGAL_ADDRESS and does nothing
// FAKE_CUDA_DEVICES=N  how many devices there are (default 1)
// FAKE_CUDA_INIT=N     the status of cuInit (default 0)
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cuda_shim.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

enum Result {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  INVALID_IMAGE = 200,
  INVALID_CONTEXT = 201,
  NOT_FOUND = 500,
  ILLEGAL_ADDRESS = 700,
};

using Work = std::function<void()>;
using Address = unsigned long long;

struct Stream {
  std::deque<Work> pending;
  Address issued = 0, done = 0;

  void run_until(Address target) {
    while (done < target) {
      Work work = pending.front();
      pending.pop_front();
      work();
      done++;
    }
  }
};

using Clock = std::chrono::steady_clock;

struct Event {
  std::shared_ptr<Stream> stream;
  Address target = 0;
  std::shared_ptr<Clock::time_point> reached_at;

  void reach() const {
    if (stream) stream->run_until(target);
  }
};

struct Function {
  const char* name;
};

std::recursive_mutex mutex;
std::map<Address, std::shared_ptr<Stream>> streams;
std::map<Address, Event> events;
std::set<void*> memory;
int modules = 0, contexts = 0;
Address next_handle = 0x1000;
thread_local void* current_context = nullptr;
std::string called;
int calls = 0;
Function functions[] = {{"kv_scatter"}, {"kv_page_digest"}};

int setting(const char* name, int otherwise) {
  const char* text = getenv(name);
  return text && *text ? atoi(text) : otherwise;
}

// Counts a call; what it returns is the call's fate.
Result enter(const char* name) {
  called += (calls++ ? "," : "") + std::string(name);
  return calls == setting("FAKE_CUDA_FAIL", 0) ? ILLEGAL_ADDRESS : SUCCESS;
}

Result enter_in_context(const char* name) {
  Result fate = enter(name);
  return fate == SUCCESS && !current_context ? INVALID_CONTEXT : fate;
}

Result submit(Address handle, Work work) {
  auto found = streams.find(handle);
  if (found == streams.end()) return INVALID_VALUE;
  found->second->pending.push_back(std::move(work));
  found->second->issued++;
  const char* order = getenv("FAKE_CUDA_ORDER");
  if (order && !strcmp(order, "eager")) found->second->run_until(found->second->issued);
  return SUCCESS;
}

// As a real driver does before memory goes away.
void synchronize_all() {
  for (auto& entry : streams) entry.second->run_until(entry.second->issued);
}

Result allocate(void** result, size_t size) {
  if (size == 0 || posix_memalign(result, 512, size)) return INVALID_VALUE;
  memset(*result, 0xCD, size);
  memory.insert(*result);
  return SUCCESS;
}

Result deallocate(void* address) {
  if (!memory.erase(address)) return INVALID_VALUE;
  synchronize_all();
  free(address);
  return SUCCESS;
}

template <class T>
T argument(void** parameters, int index) {
  return *(T*)parameters[index];
}

#define CALL(name) \
  std::lock_guard<std::recursive_mutex> guard(mutex); \
  if (Result fate = enter(name)) return fate
#define CALL_IN_CONTEXT(name) \
  std::lock_guard<std::recursive_mutex> guard(mutex); \
  if (Result fate = enter_in_context(name)) return fate

int device_get(int* device, int ordinal) {
  CALL("cuDeviceGet");
  *device = ordinal;
  return ordinal < setting("FAKE_CUDA_DEVICES", 1) ? SUCCESS : 101;
}

int device_name(char* name, int length, int) {
  CALL("cuDeviceGetName");
  snprintf(name, (size_t)length, "simulated GPU on the host");
  return SUCCESS;
}

int device_attribute(int* value, int attribute, int) {
  CALL("cuDeviceGetAttribute");
  *value = attribute == 75 ? 9 : 0;  // compute capability 9.0
  return SUCCESS;
}

int context_retain(void** context, int) {
  CALL("cuDevicePrimaryCtxRetain");
  contexts++;
  *context = &contexts;
  return SUCCESS;
}

int context_release(int) {
  CALL("cuDevicePrimaryCtxRelease");
  contexts--;
  return SUCCESS;
}

int context_set(void* context) {
  CALL("cuCtxSetCurrent");
  current_context = context;
  return SUCCESS;
}

int module_load(void** module, const void* image) {
  CALL_IN_CONTEXT("cuModuleLoadData");
  if (memcmp(image, "\x7f" "ELF", 4)) return INVALID_IMAGE;
  modules++;
  *module = &modules;
  return SUCCESS;
}

int module_function(void** function, void*, const char* name) {
  CALL_IN_CONTEXT("cuModuleGetFunction");
  for (Function& known : functions) {
    if (!strcmp(known.name, name)) return *function = &known, SUCCESS;
  }
  return NOT_FOUND;
}

int module_unload(void*) {
  CALL_IN_CONTEXT("cuModuleUnload");
  modules--;
  return SUCCESS;
}

int memory_allocate(Address* address, size_t size) {
  CALL_IN_CONTEXT("cuMemAlloc");
  return allocate((void**)address, size);
}

int memory_free(Address address) {
  CALL_IN_CONTEXT("cuMemFree");
  return deallocate((void*)address);
}

int host_allocate(void** address, size_t size, unsigned) {
  CALL_IN_CONTEXT("cuMemHostAlloc");
  return allocate(address, size);
}

int host_free(void* address) {
  CALL_IN_CONTEXT("cuMemFreeHost");
  return deallocate(address);
}

int stream_create(Address* stream, unsigned) {
  CALL_IN_CONTEXT("cuStreamCreate");
  *stream = next_handle += 16;
  streams[*stream] = std::make_shared<Stream>();
  return SUCCESS;
}

int stream_synchronize(Address stream) {
  CALL_IN_CONTEXT("cuStreamSynchronize");
  auto found = streams.find(stream);
  if (found == streams.end()) return INVALID_VALUE;
  found->second->run_until(found->second->issued);
  return SUCCESS;
}

int stream_destroy(Address stream) {
  CALL_IN_CONTEXT("cuStreamDestroy");
  return streams.erase(stream) ? SUCCESS : INVALID_VALUE;
}

int stream_wait(Address stream, Address event, unsigned) {
  CALL_IN_CONTEXT("cuStreamWaitEvent");
  Event awaited = events[event];
  return submit(stream, [awaited] { awaited.reach(); });
}

int event_create(Address* event, unsigned) {
  CALL_IN_CONTEXT("cuEventCreate");
  *event = next_handle += 16;
  events[*event] = Event();
  return SUCCESS;
}

int event_record(Address event, Address stream) {
  CALL_IN_CONTEXT("cuEventRecord");
  auto found = streams.find(stream);
  if (found == streams.end()) return INVALID_VALUE;
  auto reached_at = std::make_shared<Clock::time_point>();
  submit(stream, [reached_at] { *reached_at = Clock::now(); });
  events[event] = Event{found->second, found->second->issued, reached_at};
  return SUCCESS;
}

int event_synchronize(Address event) {
  CALL_IN_CONTEXT("cuEventSynchronize");
  events[event].reach();
  return SUCCESS;
}

int event_elapsed(float* milliseconds, Address begun, Address ended) {
  CALL_IN_CONTEXT("cuEventElapsedTime");
  const auto from = events[begun].reached_at, to = events[ended].reached_at;
  if (!from || !to) return INVALID_VALUE;
  *milliseconds = std::chrono::duration<float, std::milli>(*to - *from).count();
  return SUCCESS;
}

int event_destroy(Address event) {
  CALL_IN_CONTEXT("cuEventDestroy");
  return events.erase(event) ? SUCCESS : INVALID_VALUE;
}

int copy_to_device(Address to, const void* from, size_t size, Address stream) {
  CALL_IN_CONTEXT("cuMemcpyHtoDAsync");
  return submit(stream, [=] { memcpy((void*)to, from, size); });
}

int copy_to_host(void* to, Address from, size_t size, Address stream) {
  CALL_IN_CONTEXT("cuMemcpyDtoHAsync");
  return submit(stream, [=] { memcpy(to, (void*)from, size); });
}

int copy_batch(Address* to, Address* from, size_t* sizes, size_t count, void*, size_t*, size_t, Address stream) {
  CALL_IN_CONTEXT("cuMemcpyBatchAsync");
  struct Copy {
    Address to, from;
    size_t size;
  };
  std::vector<Copy> copies;
  for (size_t i = 0; i < count; i++) copies.push_back({to[i], from[i], sizes[i]});
  return submit(stream, [copies] {
    for (const Copy& copy : copies) memcpy((void*)copy.to, (const void*)copy.from, copy.size);
  });
}

int memory_set(Address to, unsigned char value, size_t size, Address stream) {
  CALL_IN_CONTEXT("cuMemsetD8Async");
  return submit(stream, [=] { memset((void*)to, value, size); });
}

int launch_kernel(Function* function, unsigned grid, unsigned, unsigned, unsigned block, unsigned, unsigned, unsigned, Address stream,
                  void** p, void**) {
  CALL_IN_CONTEXT("cuLaunchKernel");
  const auto base = argument<Byte*>(p, 0);
  const auto size = argument<Offset>(p, 1);
  if (function == &functions[0]) {
    const auto destination = argument<Byte*>(p, 2);
    const auto destination_bytes = argument<Offset>(p, 3);
    const auto spans = argument<const Span*>(p, 4);
    const auto rows = argument<Word>(p, 5), alignment = argument<Word>(p, 6);
    const auto status = argument<Status*>(p, 7);
    return submit(stream, [=] {
      launch(grid, block, [=] { kv_scatter(base, size, destination, destination_bytes, spans, rows, alignment, status); });
    });
  }
  const auto pages = argument<const Page*>(p, 2);
  const auto rows = argument<Word>(p, 3);
  const auto low = argument<Offset>(p, 4), high = argument<Offset>(p, 5);
  const auto digests = argument<Offset*>(p, 6);
  const auto status = argument<Status*>(p, 7);
  return submit(stream, [=] {
    launch(grid, block, [=] { kv_page_digest(base, size, pages, rows, low, high, digests, status); });
  });
}

}  // namespace

EXPORT int cuInit(unsigned) {
  CALL("cuInit");
  return setting("FAKE_CUDA_INIT", 0);
}

EXPORT int cuDriverGetVersion(int* version) {
  CALL("cuDriverGetVersion");
  *version = 13000;
  return SUCCESS;
}

EXPORT int cuDeviceGetCount(int* count) {
  CALL("cuDeviceGetCount");
  *count = setting("FAKE_CUDA_DEVICES", 1);
  return SUCCESS;
}

// The runtime compiler loads this library too, and crashes if this symbol is missing.
EXPORT int cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return NOT_FOUND;
}

// Not a call that can fail on request: the bindings ask for hundreds of functions, once a process.
EXPORT int cuGetProcAddress_v2(const char* symbol, void** address, int, unsigned long long, int*) {
  static const std::map<std::string, void*> known = {
      {"cuInit", (void*)cuInit},
      {"cuDriverGetVersion", (void*)cuDriverGetVersion},
      {"cuDeviceGetCount", (void*)cuDeviceGetCount},
      {"cuGetProcAddress", (void*)cuGetProcAddress_v2},
      {"cuDeviceGet", (void*)device_get},
      {"cuDeviceGetName", (void*)device_name},
      {"cuDeviceGetAttribute", (void*)device_attribute},
      {"cuDevicePrimaryCtxRetain", (void*)context_retain},
      {"cuDevicePrimaryCtxRelease", (void*)context_release},
      {"cuCtxSetCurrent", (void*)context_set},
      {"cuModuleLoadData", (void*)module_load},
      {"cuModuleGetFunction", (void*)module_function},
      {"cuModuleUnload", (void*)module_unload},
      {"cuMemAlloc", (void*)memory_allocate},
      {"cuMemFree", (void*)memory_free},
      {"cuMemHostAlloc", (void*)host_allocate},
      {"cuMemFreeHost", (void*)host_free},
      {"cuStreamCreate", (void*)stream_create},
      {"cuStreamSynchronize", (void*)stream_synchronize},
      {"cuStreamDestroy", (void*)stream_destroy},
      {"cuStreamWaitEvent", (void*)stream_wait},
      {"cuEventCreate", (void*)event_create},
      {"cuEventRecord", (void*)event_record},
      {"cuEventSynchronize", (void*)event_synchronize},
      {"cuEventElapsedTime", (void*)event_elapsed},
      {"cuEventDestroy", (void*)event_destroy},
      {"cuMemcpyHtoDAsync", (void*)copy_to_device},
      {"cuMemcpyDtoHAsync", (void*)copy_to_host},
      {"cuMemcpyBatchAsync", (void*)copy_batch},
      {"cuMemsetD8Async", (void*)memory_set},
      {"cuLaunchKernel", (void*)launch_kernel},
  };
  const auto found = known.find(symbol);
  *address = found == known.end() ? nullptr : found->second;
  return *address ? SUCCESS : NOT_FOUND;
}

// For tests: forget the calls so far; which calls there were, comma-separated; how many things are not released.
EXPORT void fake_cuda_reset() {
  calls = 0;
  called.clear();
}

EXPORT const char* fake_cuda_calls() { return called.c_str(); }

// Start from nothing, as a new process would, after a call to release something was made to fail.
EXPORT void fake_cuda_forget() {
  for (void* address : memory) free(address);
  memory.clear();
  streams.clear();
  events.clear();
  modules = contexts = 0;
}

EXPORT int fake_cuda_live() { return (int)(memory.size() + streams.size() + events.size()) + modules + contexts; }
