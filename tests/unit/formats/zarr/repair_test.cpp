// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// `tailrace repair` at a place of whole objects, which the command finds by the prefix of the name.
#include <gtest/gtest.h>

#include "../variables/own_file.hpp"
#include "commands.hpp"
#include "formats/index/index.hpp"
#include "formats/stores/stores.hpp"
#include "ground/storage/memory.hpp"
#include "support/bucket_service.hpp"

namespace tailrace::cli {
namespace {

int repaired(const std::string& name) {
  CLI::App app;
  int exit = -1;
  add_repair(app, exit);
  app.parse("repair " + name);
  return exit;
}

TEST(repair, cuts_a_store_of_whole_objects_back_to_its_index) {
  const std::string path = "keyed://d/fc.zarr";
  storage::keyed_places().clear();
  const auto target = stores::with_stores(storage::memory_target());
  variables::test::OwnStream own;
  own.stream.format = "zarr";
  own.stream.base = {2026, 3, 1, 0, 0, 0};
  own.fields = {variables::test::own_field("t", ElementType::f32, {"isobaricInhPa", {1000, 850}, {}, {}})};
  variables::test::write_own(*target, path, own);
  const auto whole = streams::load_index(*target, streams::index_path(path));
  ASSERT_TRUE(whole.is_ok()) << whole.status().text();
  const std::size_t objects = storage::keyed_places().all().size();
  EXPECT_EQ(repaired(path), Exit::done);
  EXPECT_EQ(storage::keyed_places().all().size(), objects);
  // What a kill leaves whose last put was that of a step that no index tells of.
  auto index = target->open(streams::index_path(path), storage::OpenMode::existing);
  ASSERT_TRUE(index.is_ok());
  ASSERT_TRUE((*index)->truncate(whole->marks.front().position).is_ok() && (*index)->close().is_ok());
  EXPECT_EQ(repaired(path), Exit::done);
  EXPECT_LT(storage::keyed_places().all().size(), objects);
  EXPECT_EQ(repaired("keyed://d/none.zarr"), Exit::failed);
}

}  // namespace
}  // namespace tailrace::cli
