// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <thread>

#include "formats/registry/registry.hpp"
#include "ground/base/text.hpp"

namespace tailrace::encoders {
namespace {

using codec::Codec;
using Functions = std::function<int(const tr_record&, tr_encoded*)>;

/// The behaviour of the encoder "script". Each test sets it.
struct Script {
  Functions encode;
  std::function<int(const tr_record* const*, std::int32_t, tr_encoded*)> head;
  std::int64_t bound = 64;
  std::string refusal;  // of bound
  int asked = 0;        // bound and head
  int threads_begun = 0, threads_ended = 0;
  void* thread = nullptr;  // as the last call got it
};
Script script;

std::string format_of_scripts() {
  static const tr_encoder functions{
      sizeof(tr_encoder),
      [](const tr_record* record, tr_encoded* out, void* thread, void*) {
        script.thread = thread;
        return script.encode(*record, out);
      },
      [](const tr_record*, tr_encoded* out, void*) {
        ++script.asked;
        if (!script.refusal.empty()) tr_encoded_fail(out, -1, script.refusal.c_str());
        return script.bound;
      },
      [](const tr_record* const* fields, std::int32_t count, tr_encoded* out, void*) {
        ++script.asked;
        return script.head ? script.head(fields, count, out) : 0;
      },
      [](void*) -> void* { return &(++script.threads_begun, script.threads_begun); },
      [](void* thread, void*) { script.threads_ended += thread == &script.threads_begun ? 1 : 0; }};
  EXPECT_TRUE(formats::register_encoder("script", &functions, nullptr).is_ok());
  return "script";
}

codec::FieldDefinition field_of(std::string name) {
  codec::FieldDefinition field;
  field.name = std::move(name);
  field.shape = {2, 3};
  field.levels = {"isobaricInhPa", {1000, 850}, {}, {}};
  return field;
}

class OwnEncoder : public testing::Test {
 protected:
  void SetUp() override {
    script = {};
    script.encode = [](const tr_record& record, tr_encoded* out) {
      return tr_encoded_append(out, record.values, 24);
    };
  }
  std::unique_ptr<Codec> codec_of_script() {
    codec::StreamDefinition stream;
    stream.format = format_of_scripts();
    stream.name = "out/{lead}.own";
    stream.base = {2026, 3, 1, 6, 0, 0};
    stream.keys = {{"quality", "3"}, {"mode", "fast"}};
    return std::move(*formats::make_codec(stream));
  }
  /// Encodes a record of the second level behind one byte. Expects that an error leaves that alone.
  Status encoded(Codec& codec, ByteVector& out) {
    std::array<float, 6> values{1, 2, 3, 4, 5, 6};
    encoder = codec.encoder();
    out = {std::byte{42}};
    Status status = encoder->encode({0, 1, 7200, 3600}, reinterpret_cast<std::byte*>(values.data()), 6, out);
    if (!status.is_ok()) {
      EXPECT_EQ(out, ByteVector{std::byte{42}});
    }
    return status;
  }
  Status failure(Functions encode) {
    script.encode = std::move(encode);
    const auto codec = codec_of_script();
    EXPECT_TRUE(codec->define(field_of("t")).is_ok());
    ByteVector out;
    return encoded(*codec, out);
  }

  std::unique_ptr<codec::Encoder> encoder;
};

void expect_text(const Status& status, Code code, std::initializer_list<const char*> words) {
  EXPECT_EQ(status.code(), code) << status.text();
  for (const char* const word : words)
    EXPECT_NE(status.text().find(word), std::string::npos) << word << " in: " << status.text();
}

TEST_F(OwnEncoder, is_told_everything_about_a_record) {
  int called = 0;
  script.encode = [&](const tr_record& record, tr_encoded* out) {
    ++called;
    EXPECT_STREQ(record.stream, "out/{lead}.own");
    EXPECT_STREQ(record.field, "t");
    EXPECT_EQ(record.type, static_cast<int>(ElementType::f32));
    EXPECT_EQ(record.ndims, 2);
    EXPECT_EQ(record.shape[1], 3);
    EXPECT_EQ(record.count, 6);
    EXPECT_EQ(static_cast<const float*>(record.values)[5], 6.0F);
    EXPECT_STREQ(record.level_type, "isobaricInhPa");
    EXPECT_EQ(record.level, 850);
    EXPECT_EQ(record.level_bottom, 850);
    EXPECT_EQ(record.levels, 2);
    EXPECT_EQ(record.level_values[0], 1000);
    EXPECT_EQ(record.level_number, 1);
    EXPECT_EQ(record.field_number, 0);
    EXPECT_STREQ(record.statistic, "maximum");
    EXPECT_EQ(record.lead, 7200);
    EXPECT_EQ(record.interval_start, 3600);
    EXPECT_STREQ(record.base_time, "2026-03-01T06:00:00Z");
    EXPECT_STREQ(record.calendar, "proleptic_gregorian");
    EXPECT_EQ(record.member, -1);
    EXPECT_EQ(record.bits, 0);
    EXPECT_EQ(record.accuracy, 0.5);
    EXPECT_TRUE(std::isnan(record.relative_accuracy));
    EXPECT_EQ(record.has_missing, 1);
    EXPECT_EQ(record.missing, -9);
    EXPECT_STREQ(tr_record_key(&record, "quality"), "7");  // the field's, not the stream's
    EXPECT_STREQ(tr_record_key(&record, "mode"), "fast");
    EXPECT_EQ(tr_record_key(&record, "fast"), nullptr);
    return tr_encoded_append(out, "x", 1);
  };
  const auto codec = codec_of_script();
  codec::FieldDefinition field = field_of("t");
  field.statistic.process = codec::Process::maximum;
  field.accuracy = 0.5;
  field.missing = -9;
  field.keys = {{"quality", "7"}};
  ASSERT_TRUE(codec->define(field).is_ok());
  ByteVector out;
  EXPECT_TRUE(encoded(*codec, out).is_ok());
  EXPECT_EQ(out, (ByteVector{std::byte{42}, std::byte{'x'}}));
  EXPECT_EQ(called, 1);
}

TEST_F(OwnEncoder, finds_missing_values_of_float32_by_the_number_that_it_is_told) {
  script.encode = [](const tr_record& record, tr_encoded* out) {
    EXPECT_EQ(static_cast<double>(static_cast<float>(1e20)), record.missing);
    return tr_encoded_append(out, "x", 1);
  };
  const auto codec = codec_of_script();
  codec::FieldDefinition field = field_of("t");
  field.missing = 1e20;
  ASSERT_TRUE(codec->define(field).is_ok());
  ByteVector out;
  EXPECT_TRUE(encoded(*codec, out).is_ok());
}

TEST_F(OwnEncoder, may_fill_room_and_give_the_rest_of_it_back) {
  ByteVector out;
  script.encode = [](const tr_record&, tr_encoded* to) {
    auto* room = static_cast<unsigned char*>(tr_encoded_room(to, 40));
    room[0] = 'a';
    room[1] = 'b';
    EXPECT_EQ(tr_encoded_used(to, 2), 0);
    EXPECT_EQ(tr_encoded_append(to, nullptr, 0), 0);
    EXPECT_NE(tr_encoded_room(to, 62), nullptr);  // the bound is 64
    return tr_encoded_used(to, 1);
  };
  const auto codec = codec_of_script();
  ASSERT_TRUE(codec->define(field_of("t")).is_ok());
  ASSERT_TRUE(encoded(*codec, out).is_ok());
  EXPECT_EQ(out, (ByteVector{std::byte{42}, std::byte{'a'}, std::byte{'b'}, std::byte{0}}));
}

TEST_F(OwnEncoder, fails_with_its_own_text_and_the_names_of_field_and_level) {
  const auto says = [](const tr_record&, tr_encoded* out) { return tr_encoded_fail(out, -1, "no ink"); };
  expect_text(failure(says), Code::format, {"format=script", "'t'", "850", "7200 s", "no ink"});
  EXPECT_EQ(encoder->offending(), -1);
  const auto names = [](const tr_record&, tr_encoded* out) { return tr_encoded_fail(out, 4, "too wet"); };
  expect_text(failure(names), Code::data, {"'t'", "850", "index 4", "too wet"});
  EXPECT_EQ(encoder->offending(), 4);
  const auto names_none = [](const tr_record&, tr_encoded* out) { return tr_encoded_fail(out, 6, "odd"); };
  expect_text(failure(names_none), Code::data, {"odd"});
  EXPECT_EQ(encoder->offending(), -1) << "there are 6 values";
  expect_text(failure([](const tr_record&, tr_encoded*) { return 77; }), Code::format, {"77", "850"});
  // Its result does not hide its text.
  expect_text(failure([](const tr_record&, tr_encoded* out) { return tr_encoded_fail(out, -1, "said"), 0; }),
              Code::format, {"said"});
}

TEST_F(OwnEncoder, that_throws_fails_with_the_text_of_the_exception) {
  expect_text(failure([](const tr_record&, tr_encoded*) -> int { throw std::runtime_error("went wrong"); }),
              Code::format, {"went wrong", "850"});
  expect_text(failure([](const tr_record&, tr_encoded*) -> int { throw 3; }), Code::format, {"850"});
  expect_text(failure([](const tr_record&, tr_encoded*) -> int { throw std::bad_alloc(); }), Code::memory,
              {"out of memory"});
}

TEST_F(OwnEncoder, that_exceeds_its_bound_or_gives_nothing_fails) {
  const auto gives = [](std::int64_t count) {
    return [count](const tr_record&, tr_encoded* out) {
      const std::string bytes(static_cast<std::size_t>(count), 'x');
      return tr_encoded_append(out, bytes.data(), count), 0;
    };
  };
  EXPECT_TRUE(failure(gives(64)).is_ok());
  expect_text(failure(gives(65)), Code::format, {"64 bytes", "bound", "850"});
  expect_text(failure(gives(0)), Code::format, {"no byte"});
  expect_text(failure([](const tr_record&, tr_encoded* out) {
                EXPECT_EQ(tr_encoded_room(out, 65), nullptr);
                return 0;
              }),
              Code::format, {"64 bytes"});
  expect_text(failure([](const tr_record&, tr_encoded* out) { return tr_encoded_append(out, "x", -1); }),
              Code::argument, {"-1"});
  expect_text(failure([](const tr_record&, tr_encoded* out) {
                tr_encoded_room(out, 4);
                return tr_encoded_used(out, 5);
              }),
              Code::argument, {"5"});
}

TEST_F(OwnEncoder, without_a_bound_a_record_may_take_twice_its_values_and_4096_bytes) {
  tr_encoder functions = TR_ENCODER;
  functions.encode = [](const tr_record* record, tr_encoded* out, void*, void*) {
    return tr_encoded_append(out, record->values, 24);
  };
  ASSERT_TRUE(formats::register_encoder("plain", &functions, nullptr).is_ok());
  codec::StreamDefinition stream;
  stream.format = "plain";
  const auto codec = std::move(*formats::make_codec(stream));
  ASSERT_TRUE(codec->define(field_of("t")).is_ok());
  EXPECT_EQ(codec->encoded_bound(0), 2 * 24 + 4096);
  EXPECT_TRUE(codec->head().empty());
}

TEST_F(OwnEncoder, with_a_senseless_bound_is_refused_when_the_field_is_defined) {
  const auto codec = codec_of_script();
  for (const std::int64_t bound : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 62}) {
    script.bound = bound;
    expect_text(codec->define(field_of("t")), Code::argument, {"'t'", "bound"});
  }
  script.bound = 24;
  script.refusal = "no bound for this";
  expect_text(codec->define(field_of("t")), Code::format, {"'t'", "no bound for this"});
  script.refusal.clear();
  EXPECT_TRUE(codec->define(field_of("t")).is_ok());
  ByteVector out;
  EXPECT_TRUE(encoded(*codec, out).is_ok()) << "the refused fields took a number";
}

TEST_F(OwnEncoder, gives_files_a_head_that_knows_all_fields) {
  script.head = [](const tr_record* const* fields, std::int32_t count, tr_encoded* out) {
    for (std::int32_t i = 0; i < count; ++i) {
      EXPECT_EQ(fields[i]->values, nullptr);
      tr_encoded_append(out, fields[i]->field, 1);
    }
    return 0;
  };
  const auto codec = codec_of_script();
  EXPECT_TRUE(codec->head().empty());
  ASSERT_TRUE(codec->define(field_of("t")).is_ok());
  ASSERT_TRUE(codec->define(field_of("u")).is_ok());
  EXPECT_EQ(codec->head(), (ByteVector{std::byte{'t'}, std::byte{'u'}}));
  script.head = [](const tr_record* const*, std::int32_t, tr_encoded* out) {
    return tr_encoded_fail(out, -1, "no head for this");
  };
  expect_text(codec->define(field_of("v")), Code::format, {"'v'", "head", "no head for this"});
  script.head = [](const tr_record* const*, std::int32_t, tr_encoded* out) {
    return tr_encoded_room(out, (1 << 20) + 1) == nullptr ? 0 : 1;
  };
  const Status too_long = codec->define(field_of("v"));
  expect_text(too_long, Code::format, {"1048576 bytes", "the most that a head may have", "`head` give less"});
  EXPECT_EQ(too_long.text().find("bound"), std::string::npos) << too_long.text();
  EXPECT_EQ(codec->head().size(), 2U) << "a refused field changes no head";
}

/// A server could tell nobody of a failure there, and the answers of two ranks might differ.
TEST_F(OwnEncoder, is_not_asked_again_where_a_field_is_adopted) {
  const auto codec = codec_of_script();
  const auto other = codec_of_script();
  std::string head = "begin 1 end";
  script.head = [&](const tr_record* const*, std::int32_t, tr_encoded* out) {
    return tr_encoded_append(out, head.data(), static_cast<std::int64_t>(head.size()));
  };
  std::vector<ByteVector> heads;
  const std::vector<std::string> texts{"begin 1 end", "begin 1 2 end", "begin 1 2 end", "", "aa", "aaa"};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    head = texts[i];
    script.bound = 10 + static_cast<std::int64_t>(i);
    ASSERT_TRUE(codec->define(field_of(cat("t", i))).is_ok());
    heads.push_back(codec->head());
  }
  const int asked = script.asked;
  for (int i = 0; i < static_cast<int>(texts.size()); ++i) {
    const ByteVector prepared = codec->prepared(i);
    EXPECT_LT(prepared.size(), 60U);
    EXPECT_EQ(other->adopt(field_of("u"), prepared).code(), Code::corrupt);
    const Status adopted = other->adopt(field_of(cat("t", i)), prepared);
    ASSERT_TRUE(adopted.is_ok()) << adopted.text();
    EXPECT_EQ(other->head(), heads[static_cast<std::size_t>(i)]);
    EXPECT_EQ(other->encoded_bound(i), 10 + i);
  }
  EXPECT_EQ(script.asked, asked);
  EXPECT_EQ(codec_of_script()->adopt(field_of("t1"), codec->prepared(1)).code(), Code::corrupt)
      << "its head follows from that of the field before";
}

TEST_F(OwnEncoder, says_how_many_of_its_functions_the_program_knows) {
  const auto registered = [](const tr_encoder* functions) {
    return formats::register_encoder("sized", functions, nullptr);
  };
  tr_encoder functions = TR_ENCODER;
  functions.encode = [](const tr_record*, tr_encoded*, void*, void*) { return 1; };
  for (const std::size_t size :
       {std::size_t{0}, sizeof functions - 8, sizeof functions + 1, std::size_t{1} << 40}) {
    functions.size = size;
    expect_text(registered(&functions), Code::argument, {"'sized'", cat(size).c_str(), "TR_ENCODER"});
  }
  struct Later {
    tr_encoder known = TR_ENCODER;
    void (*more)() = nullptr;
  } later;
  later.known.encode = functions.encode;
  later.known.size = sizeof later;
  later.more = [] {};
  expect_text(registered(&later.known), Code::unsupported, {"'sized'", "later version"});
  later.more = nullptr;
  EXPECT_TRUE(registered(&later.known).is_ok());
}

TEST_F(OwnEncoder, has_a_context_for_each_encoder_that_is_used) {
  const auto codec = codec_of_script();
  ASSERT_TRUE(codec->define(field_of("t")).is_ok());
  const auto unused = codec->encoder();
  ByteVector out;
  ASSERT_TRUE(encoded(*codec, out).is_ok());
  EXPECT_EQ(script.thread, &script.threads_begun);
  EXPECT_EQ(script.threads_begun, 1);
  EXPECT_EQ(script.threads_ended, 0);
  encoder.reset();
  EXPECT_EQ(script.threads_ended, 1);
}

TEST_F(OwnEncoder, encodes_on_several_threads_at_once) {
  const auto codec = codec_of_script();
  ASSERT_TRUE(codec->define(field_of("t")).is_ok());
  script.encode = [](const tr_record& record, tr_encoded* out) {
    return tr_encoded_append(out, record.values, 24);
  };
  std::vector<std::thread> threads;
  std::array<ByteVector, 4> outs;
  for (ByteVector& out : outs) {
    threads.emplace_back([&codec, &out] {
      std::array<float, 6> values{1, 2, 3, 4, 5, 6};
      const auto own = codec->encoder();
      for (int i = 0; i < 1000; ++i) {
        out.clear();
        EXPECT_TRUE(own->encode({0, 0, 0, 0}, reinterpret_cast<std::byte*>(values.data()), 6, out).is_ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const ByteVector& out : outs) EXPECT_EQ(out.size(), 24U);
}

TEST_F(OwnEncoder, has_a_name_of_its_own) {
  tr_encoder some = TR_ENCODER;
  some.encode = [](const tr_record*, tr_encoded*, void*, void*) { return 1; };
  const auto code_of = [&](std::string_view name, const tr_encoder* functions, void* user = nullptr) {
    return formats::register_encoder(name, functions, user).code();
  };
  for (const char* const name : {"", "a b", "a=b", "{lead}", "grib2", "GRIB2", "raw", "netcdf", "zarr"})
    EXPECT_EQ(code_of(name, &some), Code::argument) << name;
  EXPECT_EQ(code_of(std::string(33, 'x'), &some), Code::argument);
  EXPECT_EQ(code_of("none", nullptr), Code::argument);
  const tr_encoder empty = TR_ENCODER;
  EXPECT_EQ(code_of("none", &empty), Code::argument);
  EXPECT_EQ(code_of("mine-2_b", &some), Code::ok);
  EXPECT_EQ(code_of("mine-2_b", &some), Code::ok);
  int other = 0;
  EXPECT_EQ(code_of("mine-2_b", &some, &other), Code::state);
  EXPECT_EQ(*formats::find("mine-2_b"), *formats::find("mine-2_b"));
  expect_text(formats::find("mine-2_c").status(), Code::settings,
              {"did you mean \"mine-2_b\"", "tr_encoder_register", "grib2"});
  EXPECT_EQ(formats::step_count("mine-2_b", 3), std::nullopt);
}

}  // namespace
}  // namespace tailrace::encoders
