# find_package(ashlar CONFIG) with -Dashlar_DIR=.../node_modules/ashlar/cmake gives
#
#   ashlar::ashlar   your program's malloc
#   ashlar::core     only ashlar_*: the program keeps its toolchain's malloc
#   ashlar::pic      Emscripten: as ashlar::ashlar, for -sMAIN_MODULE
#   ashlar::shared   Linux: as ashlar::ashlar, linked dynamically
#
# ASHLAR_PROFILE: fast (the default), small or bare.

# Emscripten calls itself a Unix, so it is asked for first.
set(_ashlar_triple "${CMAKE_CXX_COMPILER_TARGET} ${CMAKE_C_COMPILER_TARGET}")
set(_ashlar_target "")
if(CMAKE_SYSTEM_NAME STREQUAL "Emscripten")
  set(_ashlar_target emscripten)
elseif(_ashlar_triple MATCHES "threads|wasm64")
  # Single-threaded archives for 32 bits: neither would link, or not work.
elseif(CMAKE_SYSTEM_NAME STREQUAL "WASI" OR _ashlar_triple MATCHES "wasi")
  set(_ashlar_target wasi)
elseif(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$"
       AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(_ashlar_target linux-x86_64)
endif()

if(NOT DEFINED ASHLAR_PROFILE)
  set(ASHLAR_PROFILE fast)
endif()
get_filename_component(_ashlar_root "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
set(_ashlar_lib "${_ashlar_root}/lib/${_ashlar_target}/${ASHLAR_PROFILE}")

function(_ashlar_library name kind file)
  if(EXISTS "${_ashlar_lib}/${file}" AND NOT TARGET ashlar::${name})
    add_library(ashlar::${name} ${kind} IMPORTED)
    set_target_properties(ashlar::${name} PROPERTIES
      IMPORTED_LOCATION "${_ashlar_lib}/${file}"
      INTERFACE_INCLUDE_DIRECTORIES "${_ashlar_root}/include")
  endif()
endfunction()

if(NOT _ashlar_target)
  set(ashlar_FOUND FALSE)
  string(CONCAT ashlar_NOT_FOUND_MESSAGE "ashlar has no archive for ${CMAKE_SYSTEM_NAME} "
    "${CMAKE_SYSTEM_PROCESSOR} ${CMAKE_CXX_COMPILER_TARGET}; there are: WASI (wasm32, "
    "single-threaded), Emscripten, Linux x86_64")
elseif(NOT ASHLAR_PROFILE MATCHES "^(fast|small|bare)$")
  set(ashlar_FOUND FALSE)
  set(ashlar_NOT_FOUND_MESSAGE "ASHLAR_PROFILE=${ASHLAR_PROFILE}: not one of fast, small, bare")
else()
  _ashlar_library(ashlar STATIC libashlar.a)
  _ashlar_library(core STATIC libashlar-core.a)
  _ashlar_library(pic STATIC libashlar-pic.a)
  _ashlar_library(shared SHARED libashlar.so.@SOVERSION@)
endif()

unset(_ashlar_triple)
unset(_ashlar_target)
unset(_ashlar_root)
unset(_ashlar_lib)
