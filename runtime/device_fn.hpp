// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Before a function that host and device both call, so that tests on the host run the very one
/// that a kernel does. The function may use <cmath> and plain structs, and no allocation.
#ifdef __CUDACC__
#define MILLRACE_DEVICE_FN __host__ __device__
#else
#define MILLRACE_DEVICE_FN
#endif
