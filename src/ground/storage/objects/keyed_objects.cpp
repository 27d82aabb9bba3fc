// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/objects/keyed_objects.hpp"

#include <cerrno>

#include "ground/base/text.hpp"

namespace tailrace::storage {

namespace {

/// Finds an object and calls `call` with it, or returns nothing if there is none. Repeats both after ESTALE.
/// Over NFS the descriptor of a file becomes stale once another machine has removed the file or replaced it.
/// Opening the name again finds the new file, or none.
template <typename Value, typename Call>
Result<std::optional<Value>> of_found(KeyedObjects& objects, const std::string& key, const Call& call) {
  constexpr int most_calls = 5;
  const auto once = [&]() -> Result<std::optional<Value>> {
    const Result<std::unique_ptr<FoundObject>> found = objects.find(key);
    TR_TRY(found.status());
    if (*found == nullptr) return std::optional<Value>();
    Result<Value> value = call(**found);
    TR_TRY(value.status());
    return std::optional<Value>(std::move(*value));
  };
  Result<std::optional<Value>> value = once();
  for (int calls = 1; value.status().error_number() == ESTALE && calls < most_calls; ++calls) value = once();
  return value;
}

}  // namespace

Result<std::optional<Bytes>> KeyedObjects::read(const std::string& key, Bytes offset,
                                                std::span<std::byte> data) {
  return of_found<Bytes>(*this, key, [&](FoundObject& object) { return object.read(data, offset); });
}

Result<std::optional<Bytes>> KeyedObjects::size_of(const std::string& key) {
  return of_found<Bytes>(*this, key, [](FoundObject& object) { return object.size(); });
}

Result<std::optional<std::string>> KeyedObjects::text_of(const std::string& key, Bytes most) {
  return of_found<std::string>(*this, key, [&](FoundObject& object) -> Result<std::string> {
    const Result<Bytes> size = object.size();
    TR_TRY(size.status());
    if (*size > most)
      return Status(Code::corrupt, cat(name_of(key), ": expected metadata of at most ", size_text(most),
                                       ", got ", size_text(*size)));
    std::string text(static_cast<std::size_t>(*size), '\0');
    const Result<Bytes> got = object.read(std::as_writable_bytes(std::span(text)), 0);
    TR_TRY(got.status());
    text.resize(static_cast<std::size_t>(*got));
    return text;
  });
}

}  // namespace tailrace::storage
