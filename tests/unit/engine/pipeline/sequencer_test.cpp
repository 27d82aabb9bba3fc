// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/root/sequencer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "engine/pipeline/method_choice.hpp"
#include "formats/codec/sample_codec.hpp"

namespace tailrace::pipeline {
namespace {

using node::Descriptor;
using Kind = SequenceEntry::Kind;

/// Two fields of four levels. All records cost the same, and take one byte.
struct Sample {
  Opening opening;
  codec::SampleCodec codec;
  Sequencer sequencer;
  std::vector<SequenceEntry> order;
  std::int64_t step = -1;

  explicit Sample(std::optional<codec::FixedPlaces> places, int servers = 1)
      : Sample(std::move(places), owners_of(Deal::all, servers, 0)) {}
  Sample(std::optional<codec::FixedPlaces> places, std::vector<int> owners)
      : opening(make_opening()), codec(std::move(places)), sequencer(opening, codec, std::move(owners)) {}

  static Opening make_opening() {
    Opening opening;
    opening.reference = 3;
    opening.definition.format = "sample";
    for (const char* name : {"t", "q"}) {
      opening.fields.emplace_back().name = name;
      opening.fields.back().levels.values = {1, 2, 3, 4};
    }
    return opening;
  }
  void begin() {
    ++step;
    EXPECT_TRUE(add({.kind = Descriptor::Kind::begin, .step = step, .lead = step * 3600}).is_ok());
  }
  Status put(int field, int level, Bytes most = 100) {
    return add({.kind = Descriptor::Kind::piece, .step = step, .field = field, .level = level}, most);
  }
  void end() { EXPECT_TRUE(add({.kind = Descriptor::Kind::end, .step = step}).is_ok()); }
  Status add(const Descriptor& descriptor, Bytes most = 100) {
    return sequencer.add(descriptor, most, order);
  }
  [[nodiscard]] std::vector<SequenceEntry> entries(Kind kind) const {
    std::vector<SequenceEntry> some;
    std::ranges::copy_if(order, std::back_inserter(some),
                         [kind](const SequenceEntry& entry) { return entry.kind == kind; });
    return some;
  }
};

const codec::FixedPlaces places{8, {{0, 1, 2, 3}, {4, 5, 6, 7}}};

TEST(Sequencer, runs_of_the_same_cost_go_to_the_servers_in_turn) {
  Sample sample({}, 2);
  for (int step = 0; step < 2; ++step) {
    sample.begin();
    for (const int field : {0, 1}) {
      for (int level = 0; level < 3; ++level) EXPECT_TRUE(sample.put(field, level).is_ok());
    }
    sample.end();
  }
  // A chunk is a quarter of a server's share of all records: one of eight.
  const std::vector<SequenceEntry> records = sample.entries(Kind::record);
  ASSERT_EQ(records.size(), 12u);
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].chunk, i);
    EXPECT_EQ(records[i].owner, static_cast<int>(i % 2));
    EXPECT_EQ(records[i].step, i < 6 ? 0 : 1);
  }
  EXPECT_EQ(sample.entries(Kind::end_chunk).size(), 12u);
  EXPECT_EQ(sample.order.back().kind, Kind::end_step);
}

TEST(Method, deals_records_to_the_servers_that_its_row_says) {
  EXPECT_EQ(owners_of(Deal::all, 3, 1), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(owners_of(Deal::root, 3, 1), (std::vector<int>{1}));
  EXPECT_EQ(owners_of(Deal::others, 3, 1), (std::vector<int>{0, 2}));
  EXPECT_EQ(owners_of(Deal::others, 1, 0), (std::vector<int>{0}));
}

TEST(Method, an_unknown_name_is_refused_with_the_nearest_one) {
  EXPECT_EQ((*find_method(""))->name, "scan");
  EXPECT_EQ((*find_method("serial"))->name, "serial");
  const Status status = find_method("offset_gard").status();
  EXPECT_EQ(status.code(), Code::settings);
  EXPECT_NE(status.text().find("\"offset_guard\""), std::string::npos) << status.text();
}

TEST(Method, that_auto_stands_for_depends_on_file_system_servers_nodes_and_stores) {
  using Writers = storage::FileSystem::Writers;
  const auto chosen = [](Writers writers, bool has_objects, int servers, int nodes) {
    const MethodChoice choice = choose_method({{"disk", writers}, has_objects, servers, nodes});
    EXPECT_FALSE(choice.why.empty());
    return std::string(choice.method->name);
  };
  for (const Writers each : {Writers::unknown, Writers::many, Writers::on_one_node, Writers::one}) {
    EXPECT_EQ(chosen(each, false, 1, 1), "scan") << "one server";
    EXPECT_EQ(chosen(each, true, 4, 2), "scan") << "a store";
    EXPECT_EQ(choose_method({{"disk", each}, true, 1, 1, true}).method->name, "writer") << "whole objects";
    const bool is_one = each == Writers::one;
    EXPECT_EQ(chosen(each, false, 4, 1), is_one ? "writer" : "scan");
    EXPECT_EQ(chosen(each, false, 4, 2), is_one || each == Writers::on_one_node ? "writer" : "scan");
  }
  EXPECT_EQ(choose_method({{"NFS", Writers::on_one_node}, false, 4, 2}).why,
            "on NFS writers of one file on 2 nodes wait for each other, or lose bytes");
  EXPECT_FALSE(find_method(chosen_method).is_ok()) << "it is no row";
  EXPECT_NE(find_method("outo").status().text().find("\"auto\""), std::string::npos);
}

TEST(Method, hints_are_keys_and_values) {
  EXPECT_EQ(*parse_hints("cb_nodes=2, romio_cb_write = enable,path=a=b"),
            (comm::Hints{{"cb_nodes", "2"}, {"romio_cb_write", "enable"}, {"path", "a=b"}}));
  EXPECT_TRUE(parse_hints("")->empty());
  for (const char* const wrong : {"cb_nodes", "cb_nodes=2,", "=2", "cb_nodes=", "a=1,a=2"}) {
    const Status status = parse_hints(wrong).status();
    EXPECT_EQ(status.code(), Code::settings) << wrong;
    EXPECT_NE(status.text().find("KEY=VALUE"), std::string::npos) << status.text();
  }
  EXPECT_FALSE(parse_hints(cat("a=", std::string(256, 'x'))).is_ok());
  EXPECT_FALSE(parse_hints(cat(std::string(36, 'x'), "=1")).is_ok());
}

TEST(Sequencer, deals_chunks_to_the_given_owners_alone) {
  Sample sample({}, owners_of(Deal::others, 3, 1));
  sample.begin();
  for (int level = 0; level < 4; ++level) EXPECT_TRUE(sample.put(0, level).is_ok());
  sample.end();
  std::set<int> owners;
  for (const SequenceEntry& each : sample.entries(Kind::record)) owners.insert(each.owner);
  EXPECT_EQ(owners, (std::set<int>{0, 2}));
}

TEST(Sequencer, a_chunk_takes_no_more_bytes_than_it_may) {
  Sample sample({});
  sample.begin();
  for (int level = 0; level < 4; ++level) EXPECT_TRUE(sample.put(0, level, level < 2 ? 1 : 2).is_ok());
  sample.end();
  std::vector<std::uint64_t> chunks;
  for (const SequenceEntry& entry : sample.entries(Kind::record)) chunks.push_back(entry.chunk);
  EXPECT_EQ(chunks, (std::vector<std::uint64_t>{0, 1, 1, 2}));
}

TEST(Sequencer, a_record_put_twice_fails_the_step_where_it_has_one_place) {
  Sample sample(places);
  sample.begin();
  EXPECT_TRUE(sample.put(0, 1).is_ok());
  EXPECT_TRUE(sample.put(1, 1).is_ok());
  const Status again = sample.put(1, 1);
  EXPECT_EQ(again.code(), Code::argument);
  EXPECT_EQ(again.text(), "field 'q' (level 1) is put twice in the step; format sample has one place for it");
  EXPECT_EQ(again.cause(), (Cause{0, 2, 3}));
  EXPECT_EQ(sample.entries(Kind::record).size(), 3u) << "all ranks put it";
  sample.end();
  sample.begin();
  EXPECT_TRUE(sample.put(1, 1).is_ok());
}

TEST(Sequencer, a_record_may_be_put_twice_where_records_follow_one_another) {
  Sample sample({});
  sample.begin();
  EXPECT_TRUE(sample.put(1, 1).is_ok());
  EXPECT_TRUE(sample.put(1, 1).is_ok());
}

}  // namespace
}  // namespace tailrace::pipeline
