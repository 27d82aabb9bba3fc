// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The options of calls beside those that write streams: what they take, and how they refuse the rest.
#include <gtest/gtest.h>

#include "faces/input/request.hpp"
#include "faces/outofcore/options.hpp"
#include "faces/shared/definition.hpp"
#include "faces/streams/definition/parse.hpp"
#include "ground/base/text.hpp"

namespace tailrace {
namespace {

const std::string no_size = " is no size; give bytes as 4096, 64KiB, 512MiB, 1.5GiB or 2GB";

std::string open_says(std::string_view options) { return input::parse_open("a", options).status().text(); }

Result<input::FieldRequest> read_field(std::string_view options) {
  return input::parse_field("t", static_cast<int>(ElementType::f32), {4}, options);
}

std::string read_field_says(std::string_view options) {
  const Status status = read_field(options).status();
  EXPECT_TRUE(status.text().starts_with("field \"t\": ")) << status.text();
  return status.is_ok() ? "" : status.text().substr(11);
}

std::string shared_says(const std::string& options, bool empties = true) {
  shared::Definition definition;
  definition.access = {.writes = true, .empties = empties};
  return shared::shared_options.read(options, definition).text();
}

using Keys = std::vector<std::string_view>;

/// Stores the defaults that a table tells as code, which are those of the library. Returns their keys.
template <typename Target>
Keys store_told_defaults(const OptionTable<Target>& table, Target& target) {
  Keys keys;
  for (const OptionInfo& info : table.infos()) {
    if (!info.default_value.starts_with('`')) continue;
    const std::string_view value = info.default_value.substr(1, info.default_value.find('`', 1) - 1);
    const Status status = table.set({std::string(info.key), std::string(value)}, target);
    EXPECT_TRUE(status.is_ok()) << status.text();
    keys.push_back(info.key);
  }
  return keys;
}

TEST(options_of_input, take_the_calendar_before_the_base_time) {
  const Result<input::OpenRequest> request = input::parse_open("a", "base=2026-02-30 calendar=360_day");
  ASSERT_TRUE(request.is_ok()) << request.status().text();
  EXPECT_EQ(request->base->day, 30);
  EXPECT_TRUE(open_says("prefetch=x calendar=mayan").starts_with("calendar=mayan: "));
}

TEST(options_of_input, name_what_was_given_and_what_there_is) {
  const std::string all =
      "t may be calendar, time, lead_unit, base, member, prefetch, between, follow, timeout";
  EXPECT_EQ(open_says("prefech=3"), "unknown key \"prefech\"; did you mean \"prefetch\"? I" + all);
  EXPECT_EQ(open_says("prefetch=x colour=3"), "unknown key \"colour\"; i" + all);
  EXPECT_EQ(open_says("prefetch=1001"), "prefetch=1001: 1001 is out of range; it may be 0 to 1000");
  EXPECT_EQ(open_says("follow=on base=2026-03-01 timeout=300000d"),
            "timeout=300000d: is longer than 100000 days: leave it out to wait for ever");
}

TEST(options_of_fields_that_are_read, choose_among_records) {
  const Result<input::FieldRequest> request = read_field(
      "name=tp statistic=accum since=start interval=0 percentile=90 keys=\"a=1, b=2\" missing=-1 nproma=2");
  ASSERT_TRUE(request.is_ok()) << request.status().text();
  EXPECT_EQ(request->in_file, "tp");
  EXPECT_EQ(request->choice.statistic, "accum");
  EXPECT_EQ(request->choice.since->since, codec::Statistic::Since::start);
  EXPECT_TRUE(request->choice.interval.has_value());
  EXPECT_EQ(request->choice.percentile, 90);
  EXPECT_EQ(request->choice.keys, (codec::Keys{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(request->missing, -1);
  EXPECT_EQ(request->allocation.nproma, 2);
  EXPECT_TRUE(request->takes_any_level);
  EXPECT_FALSE(read_field("since=last")->choice.since.has_value());
}

TEST(options_of_fields_that_are_read, leave_those_of_output_alone_whatever_they_say) {
  for (const std::string_view key : streams::field_options.keys()) {
    if (input::field_options.find(key) != nullptr || key == "section") continue;
    EXPECT_TRUE(read_field(cat(key, "=nonsense")).is_ok()) << key;
  }
  EXPECT_TRUE(read_field("compress=nonsense chunks=nonsense").is_ok()) << "options of formats";
}

TEST(options_of_fields_that_are_read, name_what_was_given_and_what_there_is) {
  EXPECT_TRUE(read_field_says("section=::2,:").starts_with("section= is for streams that are written"));
  EXPECT_EQ(read_field_says("levls=surface"),
            "unknown key \"levls\"; did you mean \"levels\"? It is no option of fields that are read");
  EXPECT_EQ(read_field_says("name=\"\""), "name= is empty");
  EXPECT_EQ(read_field_says("statistic=mean"),
            "statistic=mean: unknown value \"mean\"; did you mean \"average\"? It may be instant, accum, "
            "average, maximum, minimum");
  EXPECT_EQ(read_field_says("since=\"no time\""),
            "since=\"no time\": \"no time\" is neither start nor last nor a duration such as 6h");
  EXPECT_EQ(read_field_says("percentile=200"), "percentile=200: a percentile lies between 0 and 100");
  EXPECT_EQ(read_field_says("level_axis=9"), "level_axis=9: 9 is out of range; it may be 0 to 2");
}

TEST(options_of_calls, tell_the_defaults_that_the_code_has) {
  input::OpenRequest open;
  EXPECT_EQ(store_told_defaults(input::open_options, open),
            (Keys{"calendar", "prefetch", "between", "follow"}));
  const input::OpenRequest opened;
  EXPECT_EQ(open.calendar, opened.calendar);
  EXPECT_EQ(open.prefetch, opened.prefetch);
  EXPECT_EQ(open.is_linear, opened.is_linear);
  EXPECT_EQ(open.bridges, opened.bridges);
  EXPECT_EQ(open.follows, opened.follows);

  shared::Definition definition;
  EXPECT_EQ(store_told_defaults(shared::shared_options, definition), (Keys{"page", "safety"}));
  EXPECT_EQ(definition.page, shared::Definition::default_page);
  EXPECT_EQ(definition.safety, shared::Definition().safety);

  Bytes page = 0, offset = 7;
  EXPECT_EQ(store_told_defaults(shared::global_options, page), Keys{"page"});
  EXPECT_EQ(page, shared::Definition::default_page);
  EXPECT_EQ(store_told_defaults(outofcore::window_options, offset), Keys{"offset"});
  EXPECT_EQ(offset, outofcore::default_offset);
}

TEST(options_of_fields_that_are_read, tell_the_defaults_that_the_code_has) {
  const auto allocation = [](std::string_view options) {
    return input::parse_field("t", static_cast<int>(ElementType::f32), {2, 4}, options)->allocation;
  };
  input::FieldRequest request;
  EXPECT_EQ(store_told_defaults(input::field_options, request), Keys{"level_axis"});
  EXPECT_EQ(allocation("levels=pressure:850,500").level_axis,
            allocation("levels=pressure:850,500 level_axis=0").level_axis);
}

TEST(options_of_shared_files, name_what_was_given_and_what_there_is) {
  EXPECT_EQ(shared_says("page=8KiB memory=1MiB safety=rename"), "");
  EXPECT_EQ(shared_says("pages=4KiB"),
            "unknown key \"pages\"; did you mean \"page\"? It may be page, memory, safety");
  EXPECT_EQ(shared_says("page=5000"), "page=5000: a page is a power of 2 from 4KiB to 1GiB");
  EXPECT_EQ(shared_says("page=x colour=1"), "unknown key \"colour\"; it may be page, memory, safety");
  EXPECT_EQ(shared_says("memory=x"), "memory=x: \"x\"" + no_size);
  EXPECT_EQ(shared_says("safety=jornal"),
            "safety=jornal: unknown value \"jornal\"; did you mean \"journal\"? It may be none, rename, "
            "journal");
  EXPECT_TRUE(shared_says("safety=rename", false).starts_with("safety=rename: this is for files"));
}

TEST(options_of_calls_that_have_one, say_so) {
  Bytes value = 7;
  ASSERT_TRUE(outofcore::window_options.read("", value).is_ok());
  EXPECT_EQ(value, 7);
  ASSERT_TRUE(outofcore::window_options.read("offset=1KiB", value).is_ok());
  EXPECT_EQ(value, 1024);
  EXPECT_EQ(outofcore::window_options.read("offset=x", value).text(), "offset=x: \"x\"" + no_size);
  EXPECT_EQ(outofcore::window_options.read("offset=x ofset=8", value).text(),
            "unknown key \"ofset\"; did you mean \"offset\"? The only one is offset");
  EXPECT_EQ(shared::global_options.read("pages=4KiB", value).text(),
            "unknown key \"pages\"; did you mean \"page\"? The only one is page");
  EXPECT_EQ(shared::global_options.read("page=1", value).text(),
            "page=1: a page is a power of 2 from 4KiB to 1GiB");
  ASSERT_TRUE(shared::global_options.read("page=64KiB", value).is_ok());
  EXPECT_EQ(value, 65536);
}

}  // namespace
}  // namespace tailrace
