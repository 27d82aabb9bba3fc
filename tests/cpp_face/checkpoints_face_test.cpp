// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Tests the C++ face of checkpoints over the recorder's checkpoint in memory, which reads and fills the items
// in end().
#include <gtest/gtest.h>

#include <cstdlib>
#include <tailrace.hpp>

extern "C" const char* recorder_line();

namespace {

using tr::Direction;

tr::Checkpoint made() {
  auto checkpoint = tr::Checkpoint::create("restart", tr::Options("keep=3").set("busy", "drop"));
  EXPECT_TRUE(checkpoint.is_ok());
  EXPECT_STREQ(recorder_line(), "tr_checkpoint_create [restart] [keep=3 busy=drop]");
  return *std::move(checkpoint);
}

TEST(CppCheckpoint, ScalarsAndArraysAreReadAndFilledWhenTheBracketEnds) {
  auto grid = tr::Layout::block({2, 2}, {1, 0});
  tr::Checkpoint checkpoint = made();
  std::int64_t step = 1;
  std::complex<double> phase{0, 0};
  std::vector<float> with_halo{0, 0, 1, 2, 3, 4, 0, 0};
  std::vector<double> wide{1, -1, 2, -1, 3, -1, 4, -1};
  const auto state = [&] {
    checkpoint.item("step", step);
    EXPECT_STREQ(recorder_line(), "tr_checkpoint_item [step] type=4 scalar");
    checkpoint.item("phase", phase);
    checkpoint.item("t", with_halo.data(), *grid);
    EXPECT_STREQ(recorder_line(), "tr_checkpoint_item [t] type=5 layout");
    checkpoint.item("u", with_halo.data() + 2, *grid, {2, 2});
    EXPECT_STREQ(recorder_line(), "tr_checkpoint_item_shaped [u] type=5 layout extents=2,2 strides=none");
    checkpoint.item("w", wide.data(), *grid, {2, 2}, {32, 16});
    EXPECT_STREQ(recorder_line(), "tr_checkpoint_item_shaped [w] type=6 layout extents=2,2 strides=32,16");
  };
  EXPECT_TRUE(checkpoint.covers("model.log").is_ok());
  EXPECT_STREQ(recorder_line(), "tr_checkpoint_covers [model.log]");
  EXPECT_TRUE(checkpoint.commit(7).is_ok());
  EXPECT_STREQ(recorder_line(), "tr_checkpoint_commit step=7 []");
  EXPECT_TRUE(checkpoint.commit(8, "own.nc").is_ok());
  EXPECT_STREQ(recorder_line(), "tr_checkpoint_commit step=8 [own.nc]");
  std::int64_t committed = 0;
  const auto resumed = checkpoint.resume(committed);
  EXPECT_TRUE(resumed.is_ok() && *resumed && committed == 8);
  const auto begun = checkpoint.begin(Direction::save);
  ASSERT_TRUE(begun.is_ok());
  EXPECT_FALSE(*begun);
  state();
  step = 41;
  phase = {1, 2};
  EXPECT_TRUE(checkpoint.end().is_ok());
  EXPECT_EQ(checkpoint.status(), tr::SaveStatus::captured);
  EXPECT_TRUE(checkpoint.wait().is_ok());
  step = 0;
  phase = 0;
  with_halo.assign(8, 9);
  wide.assign(8, 9);
  const auto found = checkpoint.begin(Direction::load);
  ASSERT_TRUE(found.is_ok());
  EXPECT_TRUE(*found);
  state();
  EXPECT_TRUE(checkpoint.end().is_ok());
  EXPECT_EQ(step, 41);
  EXPECT_EQ(phase, std::complex<double>(1, 2));
  EXPECT_EQ(with_halo, (std::vector<float>{0, 0, 1, 2, 3, 4, 0, 0}));
  EXPECT_EQ(wide, (std::vector<double>{1, 9, 2, 9, 3, 9, 4, 9}));
  EXPECT_EQ(checkpoint.generation(), 5000000000);
  EXPECT_TRUE(checkpoint.close().is_ok());
  EXPECT_EQ(checkpoint.c_handle(), nullptr);
}

TEST(CppCheckpoint, ConstDataCanBeSavedButNotLoaded) {
  tr::Checkpoint checkpoint = made();
  const double constant = 6.5;
  ASSERT_TRUE(checkpoint.begin(Direction::save).is_ok());
  checkpoint.item("c", constant);
  ASSERT_TRUE(checkpoint.end().is_ok());
  ASSERT_TRUE(checkpoint.begin(Direction::load).is_ok());
  checkpoint.item("c", constant);
  const tr::Status refused = checkpoint.end();
  EXPECT_EQ(refused.code(), tr::Code::argument);
  EXPECT_NE(refused.text().find("c is const, and cannot be loaded"), std::string::npos) << refused.text();
  double variable = 0;
  ASSERT_TRUE(checkpoint.begin(Direction::load).is_ok());
  checkpoint.item("c", variable);
  ASSERT_TRUE(checkpoint.end().is_ok());
  EXPECT_EQ(variable, 6.5);
}

TEST(CppCheckpoint, SectionsAreHandedOverAndThoseThatDoNotMatchAreRefused) {
  auto grid = tr::Layout::block({4, 3});
  tr::Checkpoint checkpoint = made();
  std::vector<double> field(12);
  ASSERT_TRUE(checkpoint.begin(Direction::save).is_ok());
  checkpoint.item("t", field.data(), *grid, tr::Section{{0, 1}, {4, 3}, {2, 1}});
  EXPECT_STREQ(recorder_line(), "tr_checkpoint_item_section [t] type=6 start=0,1 stop=4,3 stride=2,1");
  checkpoint.item("t", field.data(), *grid, tr::Section{{0, 1}, {4, 3}});
  EXPECT_STREQ(recorder_line(), "tr_checkpoint_item_section [t] type=6 start=0,1 stop=4,3 stride=none");
  EXPECT_TRUE(checkpoint.end().is_ok());
  ASSERT_TRUE(checkpoint.begin(Direction::save).is_ok());
  checkpoint.item("t", field.data(), *grid, tr::Section{{0}, {4}});
  checkpoint.item("t", field.data(), *grid, {4, 3}, {8});
  const tr::Status refused = checkpoint.end();
  EXPECT_EQ(refused.code(), tr::Code::argument);
  EXPECT_NE(refused.text().find("t has a section of another number of dimensions"), std::string::npos)
      << refused.text();
}

TEST(CppCheckpoint, ErrorsCarryCodeAndText) {
  tr::Checkpoint checkpoint = made();
  setenv("RECORDER_REFUSE", "tr_checkpoint_begin", 1);
  const auto begun = checkpoint.begin(Direction::save);
  setenv("RECORDER_REFUSE", "tr_checkpoint_create", 1);
  const auto refused = tr::Checkpoint::create("x");
  unsetenv("RECORDER_REFUSE");
  EXPECT_EQ(begun.status().code(), tr::Code::io);
  EXPECT_EQ(begun.status().text(), "tr_checkpoint_begin: refused by the recorder");
  EXPECT_FALSE(refused.is_ok());
  EXPECT_EQ(refused.status().text(), "tr_checkpoint_create: refused by the recorder");
}

TEST(CppCheckpoint, RegisteredVariablesAreSavedAndLoaded) {
  auto grid = tr::Layout::block({4});
  int step = 7;
  std::vector<double> field{1, 2, 3, 4};
  auto checkpoint = tr::Checkpoint::create_registered(
      "restart", {{"step", step}, {"field", field.data(), *grid}}, {"one", "other"}, "l");
  ASSERT_TRUE(checkpoint.is_ok());
  EXPECT_STREQ(recorder_line(),
               "tr_checkpoint_create_registered [restart] [step] type=3 scalar [field] type=6 layout"
               " files [one] [other] mode [l]");
  EXPECT_TRUE(checkpoint->save(true).is_ok());
  EXPECT_STREQ(recorder_line(), "tr_checkpoint_save async=1");
  step = 0;
  field.assign(4, 0);
  const auto found = checkpoint->load();
  ASSERT_TRUE(found.is_ok());
  EXPECT_TRUE(*found);
  EXPECT_EQ(step, 7);
  EXPECT_EQ(field, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_DOUBLE_EQ(tr::checkpoint_interval(30, 5), 305);
}

TEST(CppCheckpoint, AMovedFromHandleIsEmpty) {
  tr::Checkpoint first = made();
  tr_checkpoint* const handle = first.c_handle();
  tr::Checkpoint second = std::move(first);
  EXPECT_EQ(first.c_handle(), nullptr);
  EXPECT_EQ(second.c_handle(), handle);
}

}  // namespace
