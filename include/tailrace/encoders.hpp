// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The C++ face of tailrace/encoders.h, which says what an encoder gets and returns, and when. Included by
// tailrace.hpp; include that one.
#ifndef TAILRACE_ENCODERS_HPP
#define TAILRACE_ENCODERS_HPP

#include <tailrace.hpp>

#include <exception>
#include <memory>

namespace tr {

/// A record and the definitions that it comes from. Valid during the call.
using Record = tr_record;

/// Local. Returns the record's values in C order, or nullptr if they are not of type T.
template <typename T>
[[nodiscard]] const T* values(const Record& record) {
  const bool are_t = record.type == static_cast<int>(type_of<T>());
  return are_t ? static_cast<const T*>(record.values) : nullptr;
}

/// Takes the bytes of one record, or of the head of files. Valid during the call.
class Encoded {
 public:
  explicit Encoded(tr_encoded* handle) : handle_(handle) {}
  /// Appends bytes. Returns false if that would exceed the bound: then the step fails.
  bool append(const void* bytes, std::size_t count) {
    return tr_encoded_append(handle_, bytes, static_cast<std::int64_t>(count)) == 0;
  }
  bool append(std::string_view text) { return append(text.data(), text.size()); }
  template <typename T, typename = std::enable_if_t<std::is_trivially_copyable_v<T>>>
  bool append(const std::vector<T>& items) {
    return append(items.data(), items.size() * sizeof(T));
  }
  /// Appends zeros for the caller to fill. Returns their address, which is valid until the next call, or
  /// nullptr.
  [[nodiscard]] void* room(std::size_t count) {
    return tr_encoded_room(handle_, static_cast<std::int64_t>(count));
  }
  /// Keeps the first `count` bytes of the last room and drops the others. Returns false, and the step fails,
  /// if the room was smaller.
  bool used(std::size_t count) { return tr_encoded_used(handle_, static_cast<std::int64_t>(count)) == 0; }
  /// Fails the step. `index` is the position in the record of a value that cannot be encoded, or -1.
  void fail(const std::string& text, Index index = -1) { tr_encoded_fail(handle_, index, text.c_str()); }

 private:
  tr_encoded* handle_;
};

/// The functions of an encoder. All but `encode` may be left out. Several threads call them at the same time.
/// If an exception leaves `encode`, the step fails on every rank with its text. If one leaves `bound` or
/// `head`, Stream::define fails with its text.
struct Encoder {
  std::function<void(const Record&, Encoded&)> encode;
  std::function<Index(const Record&)> bound = {};
  std::function<void(const std::vector<Record>&, Encoded&)> head = {};
};

namespace encoders_detail {

/// Runs a function of the program. C code is between the function and the library, so exceptions must not
/// pass.
template <typename Call>
int run(tr_encoded* out, const Call& call) {
  try {
    call();
    return 0;
  } catch (const std::exception& error) {
    return tr_encoded_fail(out, -1, error.what());
  } catch (...) {
    return tr_encoded_fail(out, -1, "the encoder threw something that is no std::exception");
  }
}

inline int encode(const tr_record* record, tr_encoded* out, void*, void* user) {
  return run(out, [&] {
    Encoded encoded(out);
    static_cast<const Encoder*>(user)->encode(*record, encoded);
  });
}

inline std::int64_t bound(const tr_record* field, tr_encoded* out, void* user) {
  std::int64_t bytes = 0;
  run(out, [&] { bytes = static_cast<const Encoder*>(user)->bound(*field); });
  return bytes;
}

inline int head(const tr_record* const* fields, std::int32_t count, tr_encoded* out, void* user) {
  return run(out, [&] {
    Encoded encoded(out);
    std::vector<Record> records;
    for (std::int32_t i = 0; i < count; ++i) records.push_back(*fields[i]);
    static_cast<const Encoder*>(user)->head(records, encoded);
  });
}

}  // namespace encoders_detail

/// Local. Registers an encoder: format=name means it for the rest of the process. Every rank calls this,
/// before tr::init if the job has servers. A name can be registered once.
[[nodiscard]] inline Status register_encoder(const std::string& name, Encoder encoder) {
  namespace calls = encoders_detail;
  auto kept = std::make_unique<Encoder>(std::move(encoder));
  tr_encoder functions = TR_ENCODER;
  if (kept->encode) functions.encode = calls::encode;
  if (kept->bound) functions.bound = calls::bound;
  if (kept->head) functions.head = calls::head;
  Status status(tr_encoder_register(name.c_str(), &functions, kept.get()));
  if (status.is_ok()) static_cast<void>(kept.release());  // lives as long as the process
  return status;
}

}  // namespace tr

#endif
