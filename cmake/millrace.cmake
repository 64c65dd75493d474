# SPDX-License-Identifier: Apache-2.0

# What every target of millrace is compiled with; third-party headers are system headers and stay out of it.
function(millrace_options target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast
    -Wnon-virtual-dtor -Woverloaded-virtual
    $<$<CXX_COMPILER_ID:GNU>:-Werror>) # clang makes the fuzzers; its warnings differ from version to version
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
  if(MILLRACE_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${MILLRACE_SANITIZE}
      -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${MILLRACE_SANITIZE})
  endif()
  if(MILLRACE_FUZZERS)
    target_compile_options(${target} PUBLIC -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# millrace_folder(NAME SOURCES file... USES target...): one static library for one top-level folder.
function(millrace_folder name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_library(millrace_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(millrace_${name} PUBLIC ${ARG_USES})
  millrace_options(millrace_${name})
endfunction()

# millrace_schema(TARGET file.fbs...): C++ headers in the build tree, included as "wire/file_generated.h".
function(millrace_schema target)
  set(out ${PROJECT_BINARY_DIR}/generated/wire)
  set(headers)
  foreach(fbs ${ARGN})
    get_filename_component(stem ${fbs} NAME_WE)
    set(header ${out}/${stem}_generated.h)
    add_custom_command(OUTPUT ${header}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${out}
      COMMAND flatbuffers::flatc --cpp --cpp-std c++17 --scoped-enums --no-prefix
              -I ${CMAKE_CURRENT_SOURCE_DIR} -o ${out} ${CMAKE_CURRENT_SOURCE_DIR}/${fbs}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${fbs}
      COMMENT "flatc ${fbs}")
    list(APPEND headers ${header})
  endforeach()
  add_custom_target(${target} DEPENDS ${headers})
endfunction()
