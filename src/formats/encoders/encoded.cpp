// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/encoders/encoded.hpp"

#include <cstring>

#include "ground/base/text.hpp"

using tailrace::Bytes;
using tailrace::cat;
using tailrace::Code;
using tailrace::Status;

tr_encoded::tr_encoded(tailrace::ByteVector& out, Bytes limit, What what)
    : out_(out), before_(out.size()), limit_(limit), what_(what), last_(out.size()) {}

std::string tr_encoded::too_much() const {
  const std::string most = tailrace::counted(limit_, "byte");
  switch (what_) {
    case What::record:
      return cat("the encoder gave more than its bound of ", most, "; let its function `bound` return more");
    case What::head:
      return cat("the encoder gave more than ", most,
                 ", the most that a head may have; let its function `head` give less");
    case What::bound:
      break;
  }
  return "its function `bound` gave bytes; it returns a number of bytes, or fails by tr_encoded_fail";
}

std::span<std::byte> tr_encoded::grow(std::int64_t count) {
  if (!failure_.is_ok()) return {};
  const auto has = static_cast<Bytes>(out_.size() - before_);
  if (count < 0) {
    fail(Code::argument, cat("the encoder appended ", count, " bytes"));
    return {};
  }
  if (count > limit_ - has) {
    fail(Code::format, too_much());
    return {};
  }
  const Status grown = tailrace::guarded([&]() -> Status {
    // Doubles the room, but not beyond the limit: the caller has counted memory for the limit only.
    const std::size_t most = before_ + static_cast<std::size_t>(limit_);
    const std::size_t needed = out_.size() + static_cast<std::size_t>(count);
    if (needed > out_.capacity()) out_.reserve(std::min(most, std::max(needed, 2 * out_.capacity())));
    last_ = out_.size();
    out_.resize(needed);
    return {};
  });
  if (!grown.is_ok()) {
    fail(grown.code(), grown.text());
    return {};
  }
  return std::span(out_).subspan(last_);
}

bool tr_encoded::keep_of_last(std::int64_t count) {
  if (!failure_.is_ok()) return false;
  if (count < 0 || count > static_cast<std::int64_t>(out_.size() - last_)) {
    fail(Code::argument,
         cat("the encoder says that it used ", count, " bytes of a room of ", out_.size() - last_));
    return false;
  }
  out_.resize(last_ + static_cast<std::size_t>(count));
  return true;
}

void tr_encoded::fail(Code code, std::string_view text, tailrace::Index index) {
  if (!failure_.is_ok()) return;
  failure_ = Status(code, std::string(text));
  offending_ = index;
}

Status tr_encoded::finish(int code) {
  if (code != 0) fail(Code::format, cat("the encoder returned ", code, " and gave no text"));
  if (!failure_.is_ok()) {
    out_.resize(before_);
    return failure_;
  }
  return {};
}

int tr_encoded_append(tr_encoded* out, const void* bytes, int64_t count) {
  const std::span<std::byte> to = out->grow(count);
  if (static_cast<int64_t>(to.size()) != count) return 1;
  if (count > 0) std::memcpy(to.data(), bytes, to.size());
  return 0;
}

void* tr_encoded_room(tr_encoded* out, int64_t count) {
  const std::span<std::byte> room = out->grow(count);
  static std::byte nothing{};
  if (static_cast<int64_t>(room.size()) != count) return nullptr;
  return room.empty() ? &nothing : room.data();
}

int tr_encoded_used(tr_encoded* out, int64_t count) { return out->keep_of_last(count) ? 0 : 1; }

int tr_encoded_fail(tr_encoded* out, int64_t index, const char* text) {
  const bool named = index >= 0;
  out->fail(named ? Code::data : Code::format, text == nullptr ? "the encoder gave no text" : text,
            named ? index : -1);
  return 1;
}

const char* tr_record_key(const tr_record* record, const char* name) {
  for (const char* const* key = record->keys; *key != nullptr; key += 2) {
    if (std::strcmp(key[0], name) == 0) return key[1];
  }
  return nullptr;
}
