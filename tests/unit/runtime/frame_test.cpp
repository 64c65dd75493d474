// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>
