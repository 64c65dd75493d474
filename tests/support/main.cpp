// SPDX-License-Identifier: Apache-2.0
#define BOOST_TEST_DYN_LINK
#define BOOST_TEST_MODULE millrace
#include <boost/test/unit_test.hpp>
