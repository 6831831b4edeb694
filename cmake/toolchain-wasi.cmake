# WASI preview 1. A wasi-sdk that the user has (WASI_SDK_PATH) comes first; without one, Debian's
# clang-22 with the sysroot that `./dev setup` unpacks.
if(DEFINED ENV{WASI_SDK_PATH})
  foreach(name wasi-sdk-p1.cmake wasi-sdk.cmake)
    if(EXISTS "$ENV{WASI_SDK_PATH}/share/cmake/${name}")
      include("$ENV{WASI_SDK_PATH}/share/cmake/${name}")
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "WASI_SDK_PATH=$ENV{WASI_SDK_PATH}: no share/cmake/wasi-sdk.cmake in it")
endif()

# CMake has no platform file for WASI.
list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")
set(CMAKE_SYSTEM_NAME WASI)
set(CMAKE_SYSTEM_PROCESSOR wasm32)

foreach(language C CXX)
  set(CMAKE_${language}_COMPILER_TARGET wasm32-wasip1)
endforeach()
set(CMAKE_C_COMPILER clang-22)
set(CMAKE_CXX_COMPILER clang++-22)
set(CMAKE_AR llvm-ar-22)
set(CMAKE_RANLIB llvm-ranlib-22)
set(CMAKE_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../build/toolchain/wasi-sysroot")

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
