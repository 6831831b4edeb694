# The freestanding modules, finished by src/wasm_os/modules.mjs (Node, Binaryen):
#   ashlar.wasm           brings its memory, imports nothing
#   ashlar-imported.wasm  imports env.memory and keeps its state in memory that it grew itself
find_program(ASHLAR_NODE node NO_CMAKE_FIND_ROOT_PATH)
if(NOT ASHLAR_NODE OR NOT EXISTS ${PROJECT_SOURCE_DIR}/node_modules/binaryen)
  message(FATAL_ERROR "the freestanding modules need Node and `npm ci`; -DASHLAR_MODULES=OFF leaves them out")
endif()

# 4 KiB of shadow stack: tests/node/modules.test.mjs measures how much of it is used. Not with clang's
# own call of wasm-opt, which drops the names that modules.mjs needs.
set(module_link --no-wasm-opt -nostdlib -Wl,--no-entry -Wl,-z,stack-size=4096)
file(STRINGS include/ashlar.h declarations REGEX "^ASHLAR_API ")
foreach(declaration IN LISTS declarations)
  string(REGEX MATCH "ashlar_[a-z_]+\\(" name "${declaration}")
  string(REPLACE "(" "" name "${name}")
  list(APPEND module_link -Wl,--export=${name})
endforeach()

function(ashlar_finish linked kind output)
  set(tool ${PROJECT_SOURCE_DIR}/src/wasm_os/modules.mjs)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${ASHLAR_NODE} ${tool} ${kind} $<TARGET_FILE:${linked}> ${output}
    DEPENDS ${linked} ${tool})
endfunction()

add_executable(ashlar_linked src/wasm_os/module.cc $<TARGET_OBJECTS:ashlar_core>)
ashlar_compile(ashlar_linked ${ASHLAR_PROFILE})
# An overflowing stack leaves memory and traps.
target_link_options(ashlar_linked PRIVATE ${module_link} -Wl,--stack-first)
ashlar_finish(ashlar_linked own ashlar.wasm)

# The same sources once more: their addresses are relative to where the state will lie.
add_library(ashlar_core_pic STATIC ${core_sources})
set_target_properties(ashlar_core_pic PROPERTIES OUTPUT_NAME ashlar-core-pic)
ashlar_compile(ashlar_core_pic ${ASHLAR_PROFILE})
target_compile_options(ashlar_core_pic PRIVATE -fPIC)
add_executable(ashlar_imported_linked src/wasm_os/module.cc $<TARGET_OBJECTS:ashlar_core_pic>)
ashlar_compile(ashlar_imported_linked ${ASHLAR_PROFILE})
target_compile_options(ashlar_imported_linked PRIVATE -fPIC)
# The stack last: what overflows it hits our own data and not the neighbour's.
target_link_options(ashlar_imported_linked PRIVATE ${module_link} -Wl,--no-stack-first
  -Wl,--global-base=16 -Wl,--import-memory)
ashlar_finish(ashlar_imported_linked imported ashlar-imported.wasm)

set_target_properties(ashlar_linked ashlar_imported_linked PROPERTIES SUFFIX .wasm)
add_custom_target(ashlar_modules ALL DEPENDS ashlar.wasm ashlar-imported.wasm)

# The self-test over the shipped objects (js/selftest.js runs it). "memory ends" runs to its maximum.
enable_language(C)
set(selftest_sources selftest.c calls.c memory.c facts.c misuse.c)
list(TRANSFORM selftest_sources PREPEND tests/selftest/)
add_executable(ashlar_selftest ${selftest_sources})
set_target_properties(ashlar_selftest PROPERTIES OUTPUT_NAME selftest SUFFIX .wasm
  C_STANDARD 11 C_EXTENSIONS OFF LINKER_LANGUAGE C)
target_include_directories(ashlar_selftest PRIVATE include)
target_compile_options(ashlar_selftest PRIVATE -mbulk-memory -ffreestanding -fno-builtin -O2)
target_link_libraries(ashlar_selftest PRIVATE ashlar_core)
target_link_options(ashlar_selftest PRIVATE --no-wasm-opt -nostdlib
  -Wl,--no-entry,--export-dynamic,--max-memory=268435456,--strip-debug)
