# Emscripten: the emsdk named by EMSDK comes first, then the em++ on the PATH. What `emcmake cmake`
# does, as a file that a preset can name.
if(DEFINED ENV{EMSDK})
  set(emscripten_root "$ENV{EMSDK}/upstream/emscripten")
else()
  find_program(ASHLAR_EM_CONFIG em-config NO_CMAKE_FIND_ROOT_PATH)
  if(NOT ASHLAR_EM_CONFIG)
    message(FATAL_ERROR "no Emscripten: EMSDK is not set and em-config is not on the PATH")
  endif()
  execute_process(
    COMMAND "${ASHLAR_EM_CONFIG}" EMSCRIPTEN_ROOT
    OUTPUT_VARIABLE emscripten_root
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
include("${emscripten_root}/cmake/Modules/Platform/Emscripten.cmake")
