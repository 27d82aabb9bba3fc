// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The precompiled header of all tests that need no MPI launcher: GoogleTest and the standard headers that
// most of these tests include.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>
