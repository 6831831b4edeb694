# ashlar_compile(TARGET PROFILE): how every object of the allocator is compiled, on every target.
#
# Freestanding, since a compiler that knows calloc turns ours into a call of itself; no exceptions,
# RTTI or guarded statics, since those call malloc or need a C++ library; never LTO, since LLVM
# makes calls of calloc and memset after it has resolved symbols.
function(ashlar_compile name profile)
  set_target_properties(${name} PROPERTIES
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden INTERPROCEDURAL_OPTIMIZATION OFF)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src
                                             ${PROJECT_SOURCE_DIR}/include)
  target_compile_definitions(${name} PRIVATE ASHLAR_PROFILE=${profile})
  target_compile_options(${name} PRIVATE
    -ffreestanding -fno-exceptions -fno-rtti -nostdinc++ -fno-threadsafe-statics
    -ffunction-sections -fdata-sections -fno-lto -Wall -Wextra -Wconversion)
  if(ASHLAR_WERROR)
    target_compile_options(${name} PRIVATE -Werror)
  endif()
  set(level -O2)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^wasm32" OR CMAKE_SYSTEM_NAME STREQUAL "Emscripten")
    target_compile_options(${name} PRIVATE -mbulk-memory)
    # A module is downloaded. The fast paths are the same at each level; what the others cost is told
    # in src/README.md, Fast paths.
    set(level -Os)
  endif()
  if(profile STREQUAL small)
    set(level -Oz)
  endif()
  # After the level of the build type, so that this one holds.
  target_compile_options(${name} PRIVATE ${level})
endfunction()
