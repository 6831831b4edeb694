// What is different in STANDALONE_WASM, where nothing may be imported that the program has no use
// for. There, and nowhere else, Emscripten's libstandalonewasm is linked, and its standalone.o,
// which also defines emscripten_resize_heap, refers to imported__wasi_fd_write. This file defines
// that name, and so is linked in exactly those programs. Position-independent objects are for
// MAIN_MODULE, which has JavaScript, and links whole archives.
#if !defined(__PIC__)

#include <unistd.h>
#include <wasi/api.h>

#include "wasm_os/emscripten_break.h"

extern "C" {

// Weak: what the program itself has linked in, and no more. Emscripten's stdio calls this import
// with no function of libc's in between.
[[gnu::weak]] __wasi_errno_t __wasi_fd_write(__wasi_fd_t, const __wasi_ciovec_t*, size_t,
                                             __wasi_size_t*);

// The import that standalone.o means, under a name of its own: a program that doesn't use
// standalone.o's output functions doesn't get it.
__wasi_errno_t ashlar_imported_fd_write(__wasi_fd_t, const __wasi_ciovec_t*, size_t, __wasi_size_t*)
    __attribute__((import_module("wasi_snapshot_preview1"), import_name("fd_write")));

[[gnu::weak, gnu::visibility("default")]] __wasi_errno_t imported__wasi_fd_write(
    __wasi_fd_t file, const __wasi_ciovec_t* parts, size_t count, __wasi_size_t* written) {
  return ashlar_imported_fd_write(file, parts, count, written);
}

// emscripten_resize_heap is memory.grow here, which refuses what it can't give.
size_t ashlar_growth_limit() { return static_cast<size_t>(-1); }

void ashlar_print_error(const char* line, size_t length) {
  if (&__wasi_fd_write == nullptr) return;
  const __wasi_ciovec_t whole = {reinterpret_cast<const uint8_t*>(line), length};
  __wasi_size_t written = 0;
  (void)__wasi_fd_write(STDERR_FILENO, &whole, 1, &written);
}

}  // extern "C"

#endif
