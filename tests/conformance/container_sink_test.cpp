// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "sinks/sink.hpp"
#include "storage/memory.hpp"

namespace tailrace::sinks {
namespace {

/// Makes containers of one kind and reads committed ones back.
struct Library {
  std::shared_ptr<MemoryShelf> shelf = std::make_shared<MemoryShelf>();
  std::unique_ptr<ContainerSink> create(const std::string& name) { return memory_container(shelf, name); }
  std::optional<std::vector<MemoryVariable>> read(const std::string& name) { return shelf->find(name); }
};

struct Candidate {
  std::string name;
  Library (*make)();
};

class ContainerSinkConformance : public testing::TestWithParam<Candidate> {
 protected:
  Library library = GetParam().make();
  std::unique_ptr<ContainerSink> sink = library.create("out.nc");

  std::vector<float> floats(const std::string& variable) {
    const auto contents = library.read("out.nc");
    if (!contents) return {};
    for (const MemoryVariable& held : *contents) {
      if (held.definition.name != variable) continue;
      std::vector<float> values(held.bytes.size() / sizeof(float));
      if (!values.empty()) std::memcpy(values.data(), held.bytes.data(), held.bytes.size());
      return values;
    }
    return {};
  }
};

TypedView view(const std::vector<float>& values) {
  return {ElementType::f32, std::as_bytes(std::span(values))};
}

TEST_P(ContainerSinkConformance, nothing_is_visible_before_the_commit) {
  const auto t = sink->define({"t", ElementType::f32, {2}});
  ASSERT_TRUE(t.is_ok());
  ASSERT_TRUE(sink->apply(*t, {{0}, {2}}, view({1, 2}), {}).is_ok());
  EXPECT_FALSE(library.read("out.nc"));
  ASSERT_TRUE(sink->commit().is_ok());
  EXPECT_EQ(floats("t"), (std::vector<float>{1, 2}));
}

TEST_P(ContainerSinkConformance, a_container_never_committed_leaves_the_old_one) {
  const auto t = sink->define({"t", ElementType::f32, {1}});
  ASSERT_TRUE(sink->apply(*t, {{0}, {1}}, view({7}), {}).is_ok());
  ASSERT_TRUE(sink->commit().is_ok());
  {
    const auto second = library.create("out.nc");
    ASSERT_TRUE(second->define({"t", ElementType::f32, {1}}).is_ok());
    ASSERT_TRUE(second->apply(0, {{0}, {1}}, view({8}), {}).is_ok());
  }
  EXPECT_EQ(floats("t"), std::vector<float>{7});
}

TEST_P(ContainerSinkConformance, boxes_land_where_they_belong) {
  ASSERT_TRUE(sink->define({"t", ElementType::f32, {3, 4}}).is_ok());
  ASSERT_TRUE(sink->apply(0, {{1, 2}, {2, 2}}, view({1, 2, 3, 4}), {}).is_ok());
  ASSERT_TRUE(sink->commit().is_ok());
  EXPECT_EQ(floats("t"), (std::vector<float>{0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4}));
}

TEST_P(ContainerSinkConformance, random_boxes_match_an_array_filled_by_hand) {
  std::mt19937_64 random(7);
  const std::vector<Index> shape{4, 3, 5, 6};
  std::vector<float> expected(4 * 3 * 5 * 6, 0);
  ASSERT_TRUE(sink->define({"t", ElementType::f32, shape}).is_ok());
  for (int i = 0; i < 200; ++i) {
    Hyperslab box;
    for (const Index extent : shape) {
      box.start.push_back(static_cast<Index>(random() % static_cast<std::uint64_t>(extent)));
      box.count.push_back(
          static_cast<Index>(random() % static_cast<std::uint64_t>(extent - box.start.back() + 1)));
    }
    std::vector<float> values;
    for (Index a = 0; a < box.count[0]; ++a)
      for (Index b = 0; b < box.count[1]; ++b)
        for (Index c = 0; c < box.count[2]; ++c)
          for (Index d = 0; d < box.count[3]; ++d) {
            values.push_back(static_cast<float>(random() % 1000));
            const Index at =
                ((box.start[0] + a) * 3 + box.start[1] + b) * 30 + (box.start[2] + c) * 6 + box.start[3] + d;
            expected[static_cast<std::size_t>(at)] = values.back();
          }
    ASSERT_TRUE(sink->apply(0, box, view(values), {}).is_ok());
  }
  ASSERT_TRUE(sink->commit().is_ok());
  EXPECT_EQ(floats("t"), expected);
}

TEST_P(ContainerSinkConformance, the_unlimited_extent_grows_with_what_is_applied) {
  ASSERT_TRUE(sink->define({"t", ElementType::f32, {unlimited, 2}}).is_ok());
  ASSERT_TRUE(sink->apply(0, {{2, 0}, {1, 2}}, view({5, 6}), {}).is_ok());
  ASSERT_TRUE(sink->apply(0, {{0, 0}, {1, 2}}, view({1, 2}), {}).is_ok());
  ASSERT_TRUE(sink->apply(0, {{9, 0}, {0, 2}}, view({}), {}).is_ok());
  ASSERT_TRUE(sink->commit().is_ok());
  EXPECT_EQ(floats("t"), (std::vector<float>{1, 2, 0, 0, 5, 6}));
  EXPECT_EQ(library.read("out.nc")->front().definition.shape, (std::vector<Index>{3, 2}));
}

TEST_P(ContainerSinkConformance, scalars_and_empty_variables_are_allowed) {
  ASSERT_TRUE(sink->define({"scalar", ElementType::f32, {}}).is_ok());
  ASSERT_TRUE(sink->define({"empty", ElementType::f32, {3, 0}}).is_ok());
  ASSERT_TRUE(sink->apply(0, {{}, {}}, view({42}), {}).is_ok());
  ASSERT_TRUE(sink->apply(1, {{0, 0}, {3, 0}}, view({}), {}).is_ok());
  ASSERT_TRUE(sink->commit().is_ok());
  EXPECT_EQ(floats("scalar"), std::vector<float>{42});
  EXPECT_EQ(floats("empty"), std::vector<float>{});
}

TEST_P(ContainerSinkConformance, boxes_outside_of_the_variable_are_refused) {
  ASSERT_TRUE(sink->define({"t", ElementType::f32, {3, 4}}).is_ok());
  const Index most = std::numeric_limits<Index>::max();
  const std::vector<Hyperslab> bad{{{0, 0}, {4, 1}},    {{-1, 0}, {1, 4}},  {{0}, {4}},
                                   {{0, 0}, {-1, -4}},  {{3, 0}, {1, 4}},   {{0, 4}, {4, 1}},
                                   {{most, 0}, {1, 4}}, {{1, 1}, {most, 4}}};
  for (const Hyperslab& box : bad) {
    const Status status = sink->apply(0, box, view({1, 2, 3, 4}), {});
    EXPECT_EQ(status.code(), Code::argument);
    EXPECT_NE(status.text().find("apply to t in out.nc"), std::string::npos) << status.text();
    EXPECT_NE(status.text().find("[3,4]"), std::string::npos) << status.text();
  }
}

TEST_P(ContainerSinkConformance, values_of_another_type_or_number_are_refused) {
  ASSERT_TRUE(sink->define({"t", ElementType::f32, {4}}).is_ok());
  const std::vector<float> values{1, 2, 3, 4};
  const auto bytes = std::as_bytes(std::span(values));
  const Status type = sink->apply(0, {{0}, {2}}, {ElementType::f64, bytes}, {});
  EXPECT_EQ(type.code(), Code::argument);
  EXPECT_NE(type.text().find("expected float32, got float64"), std::string::npos) << type.text();
  const Status size = sink->apply(0, {{0}, {3}}, view(values), {});
  EXPECT_EQ(size.code(), Code::argument);
  EXPECT_NE(size.text().find("expected 12 bytes"), std::string::npos) << size.text();
  EXPECT_EQ(sink->apply(1, {{0}, {4}}, view(values), {}).code(), Code::argument);
  EXPECT_EQ(sink->apply(-1, {{0}, {4}}, view(values), {}).code(), Code::argument);
}

TEST_P(ContainerSinkConformance, bad_definitions_are_refused_and_leave_no_variable) {
  ASSERT_TRUE(sink->define({"t", ElementType::f32, {4}}).is_ok());
  EXPECT_EQ(sink->define({"t", ElementType::f64, {4}}).status().code(), Code::argument);
  EXPECT_EQ(sink->define({"", ElementType::f64, {4}}).status().code(), Code::argument);
  EXPECT_EQ(sink->define({"u", static_cast<ElementType>(77), {4}}).status().code(), Code::argument);
  EXPECT_EQ(sink->define({"u", ElementType::f64, {4, unlimited}}).status().code(), Code::argument);
  EXPECT_EQ(sink->define({"u", ElementType::f64, {-7}}).status().code(), Code::argument);
  EXPECT_EQ(sink->define({"u", ElementType::f64, {Index{1} << 40, Index{1} << 40}}).status().code(),
            Code::argument);
  EXPECT_EQ(*sink->define({"u", ElementType::f32, {4}}), 1);
}

TEST_P(ContainerSinkConformance, variables_are_defined_before_the_first_apply) {
  ASSERT_TRUE(sink->define({"t", ElementType::f32, {1}}).is_ok());
  ASSERT_TRUE(sink->apply(0, {{0}, {1}}, view({1}), {}).is_ok());
  EXPECT_EQ(sink->define({"u", ElementType::f32, {1}}).status().code(), Code::state);
}

TEST_P(ContainerSinkConformance, filters_are_fixed_by_the_first_apply) {
  const Filters filters{{"shuffle", {}}, {"deflate", {5}}};
  ASSERT_TRUE(sink->define({"t", ElementType::f32, {2}}).is_ok());
  ASSERT_TRUE(sink->apply(0, {{0}, {1}}, view({1}), filters).is_ok());
  EXPECT_EQ(sink->apply(0, {{1}, {1}}, view({2}), {}).code(), Code::argument);
  ASSERT_TRUE(sink->apply(0, {{1}, {1}}, view({2}), filters).is_ok());
  ASSERT_TRUE(sink->commit().is_ok());
  EXPECT_EQ(library.read("out.nc")->front().filters, filters);
  EXPECT_EQ(floats("t"), (std::vector<float>{1, 2}));
}

TEST_P(ContainerSinkConformance, a_filter_the_library_lacks_is_unsupported_and_named) {
  ASSERT_TRUE(sink->define({"t", ElementType::f32, {1}}).is_ok());
  const Status status = sink->apply(0, {{0}, {1}}, view({1}), {{"deflat", {5}}});
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_NE(status.text().find("did you mean \"deflate\""), std::string::npos) << status.text();
  EXPECT_TRUE(sink->apply(0, {{0}, {1}}, view({1}), {{"deflate", {5}}}).is_ok());
}

TEST_P(ContainerSinkConformance, a_committed_container_refuses_every_call) {
  ASSERT_TRUE(sink->define({"t", ElementType::f32, {1}}).is_ok());
  ASSERT_TRUE(sink->commit().is_ok());
  EXPECT_EQ(sink->define({"u", ElementType::f32, {1}}).status().code(), Code::state);
  EXPECT_EQ(sink->apply(0, {{0}, {1}}, view({1}), {}).code(), Code::state);
  EXPECT_EQ(sink->commit().code(), Code::state);
}

INSTANTIATE_TEST_SUITE_P(every_container_sink, ContainerSinkConformance,
                         testing::Values(Candidate{"memory", [] { return Library{}; }}),
                         [](const auto& instance) { return instance.param.name; });

TEST(sinks, every_kind_is_committed_through_the_sum) {
  auto shelf = std::make_shared<MemoryShelf>();
  const auto disk = storage::memory_target();
  Sink bytes = *disk->open("a", storage::OpenMode::create), objects = memory_objects(),
       container = memory_container(shelf, "c");
  ASSERT_TRUE(std::get<std::unique_ptr<ObjectSink>>(objects)->put_metadata("m", {}).is_ok());
  for (Sink* sink : {&bytes, &objects, &container}) EXPECT_TRUE(commit(*sink).is_ok());
  EXPECT_TRUE(std::get<std::unique_ptr<ObjectSink>>(objects)->get("m").is_ok());
  EXPECT_TRUE(shelf->find("c"));
}

}  // namespace
}  // namespace tailrace::sinks
