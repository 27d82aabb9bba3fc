// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Parts of input streams by themselves: the ring of a field.
#include <gtest/gtest.h>

#include <map>

#include "comm/transport.hpp"
#include "input/leads.hpp"
#include "input/loader.hpp"
#include "input/ring.hpp"

namespace tailrace::input {
namespace {

constexpr std::int64_t an_hour = 3600;

/// A process that is alone.
class Silent final : public comm::Transport {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  void send(int, comm::LineNumber, comm::Traffic, ByteVector) override {}
  bool progress() override { return false; }
  std::optional<comm::Envelope> receive() override { return {}; }
  std::optional<comm::Envelope> receive_request() override { return {}; }
  std::optional<ByteVector> receive_from(int, comm::LineNumber, comm::Traffic) override { return {}; }
  [[nodiscard]] Bytes unsent(comm::LineNumber, comm::Traffic) const override { return 0; }
  [[nodiscard]] bool all_sent() const override { return true; }
};

FieldDefinition small_field() {
  FieldDefinition field;
  field.name = "t";
  field.levels.type = "surface";
  field.levels.values = {0};
  field.shape = {2, 3};
  field.cut = {{0, 0}, {2, 3}};
  return field;
}

/// A ring in memory of its own.
struct OwnRing {
  explicit OwnRing(const FilesDefinition& files)
      : memory(static_cast<std::size_t>(Ring::bytes_for(files, small_field()) / 64 + 1)),
        ring((Ring::make(bytes(), files, small_field()), bytes()), transport) {}
  std::byte* bytes() { return memory.data()->bytes; }
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> memory;
  Silent transport;
  Ring ring;
};

using Leads = std::vector<std::int64_t>;

TEST(input_ring, the_steps_that_make_an_open_step_stay_though_one_between_them_comes) {
  FilesDefinition files;
  files.follows = files.is_linear = true;
  files.leads = {0, 6 * an_hour};
  OwnRing own(files);
  Ring& ring = own.ring;
  EXPECT_EQ(ring.begin(0, 3 * an_hour), 3 * an_hour);
  EXPECT_EQ(*ring.around(3 * an_hour), (Leads{0, 6 * an_hour}));
  ring.add_steps(Leads{0, 3 * an_hour, 6 * an_hour});
  EXPECT_EQ(*ring.around(3 * an_hour), (Leads{0, 6 * an_hour})) << "another rank of the node comes later";
  EXPECT_TRUE(ring.find(0) && ring.find(6 * an_hour)) << "a rank copies from these slots";
  EXPECT_EQ(ring.begin(1, 3 * an_hour), 3 * an_hour);
  EXPECT_EQ(*ring.around(3 * an_hour), Leads{3 * an_hour});
}

TEST(input_ring, another_field_says_which_steps_make_the_open_one) {
  FilesDefinition files;
  files.follows = true;
  files.leads = {0};
  OwnRing own(files);
  Ring& ring = own.ring;
  ring.begin(0, 3 * an_hour);
  EXPECT_FALSE(ring.find(3 * an_hour)) << "this ring has not heard of it";
  ring.make_of(Leads{3 * an_hour});
  EXPECT_TRUE(ring.find(3 * an_hour));
  EXPECT_EQ(ring.steps(), (Leads{0, 3 * an_hour}));
}

TEST(input_ring, a_step_that_is_tried_again_leaves_the_direction_as_it_is) {
  FilesDefinition files;
  files.prefetch = 1;
  for (std::int64_t hour = 0; hour < 6; ++hour) files.leads.push_back(hour * an_hour);
  OwnRing own(files);
  Ring& ring = own.ring;
  ring.begin(0, 4 * an_hour);
  ring.begin(1, 3 * an_hour);
  ring.begin(2, 3 * an_hour);
  EXPECT_TRUE(ring.find(2 * an_hour)) << "leads fall";
  EXPECT_FALSE(ring.find(4 * an_hour));
  ring.begin(3, 5 * an_hour);
  ring.begin(4, 4 * an_hour);
  ring.begin(5, 5 * an_hour);
  EXPECT_FALSE(ring.find(4 * an_hour)) << "leads rise";
}

}  // namespace
}  // namespace tailrace::input
