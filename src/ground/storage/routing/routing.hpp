// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ground/storage/target.hpp"

namespace tailrace::storage {

/// The names that begin with a prefix, and the function that makes the target of their files.
struct Route {
  std::string prefix;  // one of target_kinds(), as "memory://"
  std::function<Result<std::shared_ptr<Target>>()> make;
};

/// Returns a target that hands every call on to another one: to that of the route whose prefix the name has,
/// or to `usual`, if no route has it. Names go on as they are, with their prefix. A route's target is made in
/// the first call that needs it; if that fails, this call and all later ones with the prefix return the
/// error. A rename needs both names on one target, as it needs them in one directory; copy() may have them on
/// two.
std::shared_ptr<Target> routing_target(std::shared_ptr<Target> usual, std::vector<Route> routes);

}  // namespace tailrace::storage
