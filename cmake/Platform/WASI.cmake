# What CMake knows about WASI: nothing is shared, programs end in .wasm.
set(WASI TRUE)
set_property(GLOBAL PROPERTY TARGET_SUPPORTS_SHARED_LIBS FALSE)
set(CMAKE_EXECUTABLE_SUFFIX .wasm)
