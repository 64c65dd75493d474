// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Put before a function of one element (a token, a sequence) that a GPU runs as well: nvcc
/// compiles it for both, other compilers see an ordinary function. So what tests check on the host
/// is what runs on the device.
#ifdef __CUDACC__
#define MILLRACE_DEVICE_FN __host__ __device__
#else
#define MILLRACE_DEVICE_FN
#endif
