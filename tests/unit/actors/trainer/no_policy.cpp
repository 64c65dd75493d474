// SPDX-License-Identifier: Apache-2.0
// A library that is no policy.

extern "C" int answer_of_another_library() { return 42; }
