// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/method_choice.hpp"

#include "ground/base/text.hpp"

namespace tailrace::pipeline {

MethodChoice choose_method(const Surroundings& surroundings) {
  using Writers = storage::FileSystem::Writers;
  const auto take = [](std::string_view name, std::string why) {
    return MethodChoice{*find_method(name), std::move(why)};
  };
  if (surroundings.has_whole_objects)
    return {&default_method_of_one_writer(), "the place of its files takes each object as a whole"};
  const auto& [name, writers] = surroundings.files;
  if (surroundings.servers == 1) return take("scan", "there is one server");
  if (surroundings.has_objects) return take("scan", "no two servers write one object of a store");
  switch (writers) {
    case Writers::many:
      return take("scan", cat(name, " bears many writers of one file"));
    case Writers::on_one_node:
      if (surroundings.nodes == 1)
        return take("scan", cat(name, " bears the writers of one node, and all servers are on one"));
      return take("writer", cat("on ", name, " writers of one file on ", surroundings.nodes,
                                " nodes wait for each other, or lose bytes"));
    case Writers::one:
      return take("writer", cat("on ", name, " each file should have one writer"));
    case Writers::unknown:
      break;
  }
  return take("scan", "the kind of file system is not known");
}

}  // namespace tailrace::pipeline
