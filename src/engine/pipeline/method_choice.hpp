// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>

#include "engine/pipeline/method.hpp"
#include "ground/storage/systems/file_system.hpp"

namespace tailrace::pipeline {

/// choose_method() takes a stream's method by these.
struct Surroundings {
  storage::FileSystem files;  // where the stream's files lie
  bool has_objects = false;   // each file is a store: no two servers write one object of it
  int servers = 1;
  int nodes = 1;                   // with servers
  bool has_whole_objects = false;  // the place of the files takes each object as a whole
};

struct MethodChoice {
  const Method* method = nullptr;
  std::string why;
};
/// Local. Returns the method that method=auto stands for: docs/methods.md has the same rule.
MethodChoice choose_method(const Surroundings& surroundings);

}  // namespace tailrace::pipeline
