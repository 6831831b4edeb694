// The names that the target's libc defines together in its malloc, in one member as there: a
// program that refers to any of them gets all of them from here, and the libc's own malloc is not
// linked.
#include <errno.h>

#include "api.h"
#include "os.h"
#include "override_memalign.h"
#include "override_names.h"

// Several names stand for each of these.
extern "C" {

void* ashlar_own_malloc(size_t size) { return ashlar::allocate(size); }

void ashlar_own_free(void* block) { ashlar::release(block); }

void* ashlar_own_calloc(size_t count, size_t size) { return ashlar::allocate_zeroed(count, size); }

void* ashlar_own_realloc(void* block, size_t size) { return ashlar::reallocate(block, size); }

void* ashlar_own_memalign(size_t alignment, size_t size) {
  return ashlar::allocate_rounding_alignment(alignment, size);
}

}  // extern "C"

#define ASHLAR_ALIAS(name) gnu::alias("ashlar_own_" #name)

ASHLAR_LIBC_NAME [[ASHLAR_ALIAS(malloc)]] void* malloc(size_t size);
ASHLAR_LIBC_NAME [[ASHLAR_ALIAS(free)]] void free(void* block);
ASHLAR_LIBC_NAME [[ASHLAR_ALIAS(malloc)]] void* __libc_malloc(size_t size);
ASHLAR_LIBC_NAME [[ASHLAR_ALIAS(free)]] void __libc_free(void* block);
ASHLAR_LIBC_NAME [[ASHLAR_ALIAS(calloc)]] void* __libc_calloc(size_t count, size_t size);

#if !defined(__wasi__)
ASHLAR_LIBC_NAME [[ASHLAR_ALIAS(realloc)]] void* __libc_realloc(void* block, size_t size);
#endif

#if defined(__linux__)
ASHLAR_LIBC_NAME [[ASHLAR_ALIAS(memalign)]] void* __libc_memalign(size_t, size_t);
#endif

#if defined(__EMSCRIPTEN__)

// What Emscripten's own libraries and sanitizers call, past any malloc of the program's.
ASHLAR_LIBC_NAME [[ASHLAR_ALIAS(malloc)]] void* emscripten_builtin_malloc(size_t size);
ASHLAR_LIBC_NAME [[ASHLAR_ALIAS(free)]] void emscripten_builtin_free(void* block);
ASHLAR_LIBC_NAME [[ASHLAR_ALIAS(calloc)]] void* emscripten_builtin_calloc(size_t, size_t);
ASHLAR_LIBC_NAME [[ASHLAR_ALIAS(realloc)]] void* emscripten_builtin_realloc(void*, size_t);
ASHLAR_LIBC_NAME [[ASHLAR_ALIAS(memalign)]] void* emscripten_builtin_memalign(size_t, size_t);

namespace {

// Weak names can be replaced one by one, without a word from the linker. A block from one allocator
// that is freed by another destroys data; so the program ends before.
slow_path void stop_on_second_malloc() {
  static constexpr char line[] =
      "ashlar: two allocators: define all names of malloc or none, or link with -sMALLOC=none\n";
  ashlar::os::write_error(line, sizeof line - 1);
  ashlar::os::stop();
}

// For functions whose blocks the program gives to `free`.
fast_path void require_own_free() {
  if (&free != &ashlar_own_free) stop_on_second_malloc();
}

}  // namespace

// The OS layer calls it before memory grows. Emscripten's libc pairs these names with each other,
// and with -sMAIN_MODULE=1 its malloc is linked whatever we define.
extern "C" void ashlar_require_single_malloc() {
  if (&emscripten_builtin_malloc != &ashlar_own_malloc) stop_on_second_malloc();
}

#else

namespace {

// A second one does not link.
fast_path void require_own_free() {}

}  // namespace

#endif

#if defined(__linux__)
// A free that programs linked before glibc 2.26 may call.
ASHLAR_LIBC_NAME [[ASHLAR_ALIAS(free)]] void cfree(void* block);
#endif

const unsigned char ashlar_is_malloc = 1;

ASHLAR_LIBC_NAME void* calloc(size_t count, size_t size) {
  require_own_free();
  return ashlar::allocate_zeroed(count, size);
}

ASHLAR_LIBC_NAME void* realloc(void* block, size_t size) {
  require_own_free();
  return ashlar::reallocate(block, size);
}

ASHLAR_LIBC_NAME void* aligned_alloc(size_t alignment, size_t size) {
  require_own_free();
  if (!ashlar::is_power_of_two(alignment)) {
    ashlar::os::set_invalid_argument();
    return nullptr;
  }
  return ashlar::allocate_aligned(alignment, size);
}

ASHLAR_LIBC_NAME int posix_memalign(void** result, size_t alignment, size_t size) {
  require_own_free();
  if (!ashlar::is_power_of_two(alignment) || alignment < sizeof(void*)) return EINVAL;
  void* const block = ashlar::allocate_aligned(alignment, size);
  if (block == nullptr) return ENOMEM;
  *result = block;
  return 0;
}

ASHLAR_LIBC_NAME size_t malloc_usable_size(void* block) {
  require_own_free();
  return ashlar::usable_size(block);
}

#if defined(__linux__) && !defined(ASHLAR_SHARED)
// The linker takes this in programs only. It runs before any library's constructor.
[[gnu::section(".preinit_array"),
  gnu::used]] static void (*const at_start)() = ashlar::os::register_fork_handlers;
#endif

#if !defined(__wasi__)

ASHLAR_LIBC_NAME void* memalign(size_t alignment, size_t size) {
  require_own_free();
  return ashlar_own_memalign(alignment, size);
}

#endif
