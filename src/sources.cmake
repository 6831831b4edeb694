# The source files of each target, relative to src/. Every override file is one archive member: what
# a program may define itself stands in a member of its own.
set(ASHLAR_CORE_SOURCES
  fault.cc
  page_map.cc
  arena.cc
  page.cc
  heap.cc
  check.cc
  api.cc)

set(ASHLAR_OS_SOURCES_wasi wasm_os/linear.cc)
set(ASHLAR_OS_SOURCES_freestanding wasm_os/linear.cc)
set(ASHLAR_OS_SOURCES_emscripten wasm_os/emscripten.cc wasm_os/emscripten_standalone.cc)
set(ASHLAR_OS_SOURCES_native native_os/native.cc)

set(ASHLAR_OVERRIDE_SOURCES_wasi
  override_libc.cc
  override_align.cc
  override_new.cc)
set(ASHLAR_OVERRIDE_SOURCES_emscripten
  ${ASHLAR_OVERRIDE_SOURCES_wasi}
  override_info.cc
  override_bulk.cc
  override_emmalloc.cc
  wasm_os/emscripten_sbrk.cc)
set(ASHLAR_OVERRIDE_SOURCES_native
  ${ASHLAR_OVERRIDE_SOURCES_wasi}
  override_info.cc)
set(ASHLAR_OVERRIDE_SOURCES_freestanding)

# Natively a program's own operator new may throw through ours.
if(target STREQUAL native)
  set_source_files_properties(src/override_new.cc PROPERTIES COMPILE_OPTIONS -fexceptions)
endif()

# What runs seldom is compiled for size, where a module is downloaded.
if(NOT target STREQUAL native)
  set_source_files_properties(src/fault.cc src/check.cc src/page_map.cc src/api.cc
    src/wasm_os/linear.cc PROPERTIES COMPILE_OPTIONS -Oz)
endif()
