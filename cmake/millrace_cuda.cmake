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
  if(NOT DEFINED CMAKE_CUDA_HOST_COMPILER)
    set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER} CACHE FILEPATH "What nvcc compiles host code with")
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

# millrace_cuda_options(TARGET): what a target of .cu files is compiled with. clang-tidy and the check of headers cannot
# read nvcc's commands: they stay out of compile_commands.json.
function(millrace_cuda_options target)
  set_target_properties(${target} PROPERTIES EXPORT_COMPILE_COMMANDS OFF)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--Werror=all-warnings> "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wshadow>")
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
endfunction()

# millrace_gpu_test(NAME PROGRAM FILTER): a CTest with label gpu that runs the cases of a Boost.Test program whose names
# match FILTER; skipped, with the reason, where there is no GPU.
function(millrace_gpu_test name program filter)
  add_test(NAME ${name} COMMAND sh -c
    "\"$1\" && exec \"$2\" --color_output=no \"--run_test=$3\""
    sh $<TARGET_FILE:gpu_here> $<TARGET_FILE:${program}> ${filter})
  set_tests_properties(${name} PROPERTIES LABELS gpu SKIP_RETURN_CODE 77 RUN_SERIAL ON)
endfunction()
