# SPDX-License-Identifier: Apache-2.0
# Whether this build has CUDA (MILLRACE_HAS_CUDA) and NCCL (MILLRACE_HAS_NCCL), as MILLRACE_CUDA and MILLRACE_NCCL ask for.
set(MILLRACE_HAS_CUDA OFF)
set(MILLRACE_HAS_NCCL OFF)

if(MILLRACE_CUDA)
  # The usual place is in no PATH; CUDACXX, which check_language() and CMake listen to, wins.
  find_program(MILLRACE_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
  if(MILLRACE_NVCC AND NOT DEFINED ENV{CUDACXX})
    set(ENV{CUDACXX} ${MILLRACE_NVCC})
  endif()
  if(NOT DEFINED ENV{CUDAHOSTCXX})
    set(ENV{CUDAHOSTCXX} ${CMAKE_CXX_COMPILER})
  endif()
  # Machine code for A100 (also for other cards of 8.x) and for H100 and H200; PTX of 9.0 for what comes later.
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90 CACHE STRING "CUDA architectures")
  if(CMAKE_CXX_COMPILER_LAUNCHER AND NOT DEFINED CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  include(CheckLanguage)
  check_language(CUDA) # without it enable_language() would end the configuration
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # CMake 3.25 knows C++20 of clang only
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    find_package(CUDAToolkit REQUIRED)
    set(MILLRACE_HAS_CUDA ON)
  elseif(NOT MILLRACE_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "MILLRACE_CUDA=${MILLRACE_CUDA}, and no nvcc that works: set CUDACXX, or -DMILLRACE_CUDA=OFF")
  endif()
endif()

if(MILLRACE_NCCL AND MILLRACE_HAS_CUDA)
  find_package(NCCL 2.18)
  set(MILLRACE_HAS_NCCL ${NCCL_FOUND})
endif()
if(MILLRACE_NCCL AND NOT MILLRACE_NCCL STREQUAL "AUTO" AND NOT MILLRACE_HAS_NCCL)
  message(FATAL_ERROR "MILLRACE_NCCL=${MILLRACE_NCCL}, and no CUDA or no nccl.h: set NCCL_ROOT, or -DMILLRACE_NCCL=OFF")
endif()
message(STATUS "CUDA: ${MILLRACE_HAS_CUDA}, NCCL: ${MILLRACE_HAS_NCCL}")

# millrace_kernels(TARGET file.cu...): adds kernels to a library of ours. In builds without CUDA the files are compiled as
# C++, which leaves what the host runs.
function(millrace_kernels target)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  if(NOT MILLRACE_HAS_CUDA)
    target_sources(${target} PRIVATE ${ARGN})
    set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES LANGUAGE CXX)
    return()
  endif()
  if(NOT TARGET ${target}_kernels)
    # A target of its own: clang-tidy and the check of headers cannot read nvcc's commands.
    add_library(${target}_kernels OBJECT)
    set_target_properties(${target}_kernels PROPERTIES EXPORT_COMPILE_COMMANDS OFF)
    target_compile_options(${target}_kernels PRIVATE
      --Werror=all-warnings "-Xcompiler=-Wall,-Wextra,-Wshadow,-Werror")
    # fmt 9 gives nvcc no constexpr, then GCC misses it; and its consteval is more than nvcc 13 can do.
    target_compile_definitions(${target}_kernels PRIVATE FMT_USE_CONSTEXPR=1 FMT_CONSTEVAL=)
    target_include_directories(${target}_kernels PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${target}_kernels PRIVATE fmt::fmt tl::expected)
    target_link_libraries(${target} PRIVATE ${target}_kernels)
  endif()
  target_sources(${target}_kernels PRIVATE ${ARGN})
endfunction()

# millrace_gpu_test(NAME PROGRAM FILTER): a CTest with label gpu that runs the cases of a Boost.Test program whose names
# match FILTER; skipped, with the reason, where there is no GPU.
function(millrace_gpu_test name program filter)
  add_test(NAME ${name} COMMAND sh -c
    "\"$1\" && exec \"$2\" --color_output=no \"--run_test=$3\""
    sh $<TARGET_FILE:gpu_here> $<TARGET_FILE:${program}> ${filter})
  set_tests_properties(${name} PROPERTIES LABELS gpu SKIP_RETURN_CODE 77 RUN_SERIAL ON)
endfunction()
