// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/zarr/store/objects.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "formats/zarr/codec.hpp"
#include "formats/zarr/store/times.hpp"
#include "ground/base/text.hpp"

namespace tailrace::zarr {

using storage::KeyedObjects;

namespace {

constexpr std::string_view group_key = "zarr.json";
constexpr Bytes most_text = Bytes{1} << 30;

/// Returns the number of the array's object with this name, or nothing if the array has no such object.
std::optional<std::int64_t> number_of(const Layout::Array& array, const std::string& name) {
  std::int64_t number = 0;
  if (name.starts_with("c.")) std::from_chars(name.data() + 2, name.data() + name.size(), number);
  if (array.object(number) != cat(array.name, "/", name)) return std::nullopt;
  return number;
}

}  // namespace

Result<std::shared_ptr<const Layout>> Objects::load() {
  Result<bool> has_begun = keyed_->exists(std::string(begun_with));
  TR_TRY(has_begun.status());
  if (!*has_begun) {
    const Status own = check_own(nullptr);
    if (own.is_ok()) return std::shared_ptr<const Layout>();
    // Another process may have begun the store since the first look: the foreign files are arrays of its own
    // then.
    has_begun = keyed_->exists(std::string(begun_with));
    if (!has_begun.is_ok() || !*has_begun) return own;
  }
  Result<std::optional<std::string>> text = keyed_->text_of(std::string(begun_with), most_text);
  TR_TRY(text.status());
  if (!*text) return io_error("open", keyed_->name_of(begun_with), ENOENT);
  Result<std::shared_ptr<const Layout>> layout = known_->layout_of(std::move(**text));
  TR_TRY(layout.status().in(keyed_->name_of(begun_with)));
  return layout;
}

Status Objects::put(const std::string& key, const std::string& text) {
  const Text one{key, text};
  return keyed_->put({&one, 1});
}

Status Objects::put_when_many(std::vector<Text>& texts) {
  return texts.size() < KeyedObjects::most_at_once ? Status() : keyed_->put(std::exchange(texts, {}));
}

/// Writes .tailrace.json first: a directory without it belongs to no stream. Writes zarr.json of the group
/// last, so that readers find a store with all its arrays.
Status Objects::begin(const Layout& layout, std::span<const std::byte> head) {
  TR_TRY(put(std::string(begun_with), layout.group_text(0)));
  TR_TRY(keyed_->sync_keys());
  TR_TRY(check_no_links(layout));
  std::vector<Text> texts;
  for (const Array& each : layout.arrays()) {
    const Result<bool> made = keyed_->make_group(each.name);
    TR_TRY(made.status());
    if (!*made)
      return {Code::state,
              cat(directory(), ": '", each.name,
                  "' and another array are one directory here, since the file system does not tell "
                  "upper from lower case; give one of the fields another name")};
    texts.push_back({cat(each.name, "/", group_key), layout.array_text(each, 0)});
    TR_TRY(put_when_many(texts));
    if (each.has_steps) continue;
    const auto bytes =
        head.subspan(static_cast<std::size_t>(each.begin), static_cast<std::size_t>(each.size));
    TR_TRY(write(each, 0, 0, {&bytes, 1}));
  }
  TR_TRY(keyed_->put(texts));
  TR_TRY(settle());
  return tell(layout, 0);
}

Status Objects::check_no_links(const Layout& layout) {
  for (const Array& each : layout.arrays()) {
    const Result<bool> is_link = keyed_->leads_elsewhere(each.name);
    TR_TRY(is_link.status());
    if (*is_link)
      return {Code::state, cat(keyed_->name_of(each.name),
                               ": is a link, and somebody else's files may be behind it; remove the link, "
                               "and put the array's directory in its place if the store has steps")};
  }
  return {};
}

Result<bool> Objects::is_begun(const Layout& layout) {
  std::vector<std::string> objects{std::string(group_key)};
  for (const Array& each : layout.arrays()) {
    objects.push_back(cat(each.name, "/", group_key));
    if (!each.has_steps) objects.push_back(each.object(0));
  }
  for (const std::string& object : objects) {
    const Result<bool> exists = keyed_->exists(object);
    if (!exists.is_ok() || !*exists) return exists;
  }
  return true;
}

Status Objects::tell(const Layout& layout, std::int64_t steps) {
  return put(std::string(group_key), layout.group_text(steps));
}

Result<std::optional<std::int64_t>> Objects::told(const Layout& layout) {
  const Result<std::optional<std::string>> text = keyed_->text_of(std::string(group_key), most_text);
  TR_TRY(text.status());
  if (!*text) return std::optional<std::int64_t>(0);
  const Result<std::int64_t> steps = layout.steps_in(**text);
  return steps.is_ok() ? std::optional(*steps) : std::nullopt;
}

Status Objects::tell_arrays(const Layout& layout, std::int64_t steps) {
  std::vector<Text> texts;
  for (const Array& each : layout.arrays()) {
    Text told{cat(each.name, "/", group_key), layout.array_text(each, steps)};
    const Result<std::optional<std::string>> found = keyed_->text_of(told.key, most_text);
    TR_TRY(found.status());
    if (*found != told.text) texts.push_back(std::move(told));
    TR_TRY(put_when_many(texts));
  }
  return keyed_->put(texts);
}

/// A new object of times has "no time" in all its places.
Status Objects::write(const Array& array, std::int64_t number, Bytes offset, storage::Parts parts) {
  return keyed_->write(array.object(number), offset, parts, no_times(array.in_chunk * array.size));
}

Result<Bytes> Objects::read(const Array& array, std::int64_t number, Bytes offset,
                            std::span<std::byte> data) {
  const Result<std::optional<Bytes>> got = keyed_->read(array.object(number), offset, data);
  TR_TRY(got.status());
  std::ranges::fill(data.subspan(static_cast<std::size_t>(got->value_or(0))), std::byte{0});
  return got->value_or(0);
}

Result<std::optional<Bytes>> Objects::size_of(const Array& array, std::int64_t number) {
  return keyed_->size_of(array.object(number));
}

Result<std::vector<std::int64_t>> Objects::numbers(const Array& array) {
  std::vector<std::int64_t> found;
  const Result<std::vector<std::string>> names = keyed_->list(array.name);
  if (names.status().error_number() == ENOENT) return found;
  TR_TRY(names.status());
  for (const std::string& name : *names) {
    if (const std::optional<std::int64_t> number = number_of(array, name)) found.push_back(*number);
  }
  std::ranges::sort(found);
  return found;
}

Status Objects::forget_times(const Array& array, std::int64_t steps) {
  const Result<std::vector<std::int64_t>> found = numbers(array);
  TR_TRY(found.status());
  for (const std::int64_t number : *found) {
    const std::int64_t kept = std::clamp<std::int64_t>(steps - number * array.in_chunk, 0, array.in_chunk);
    ByteVector there(static_cast<std::size_t>((array.in_chunk - kept) * array.size));
    if (kept == 0) {
      TR_TRY(keyed_->remove(array.object(number)));
    } else if (kept < array.in_chunk) {
      const ByteVector none = no_times(std::ssize(there));
      const Result<Bytes> got = read(array, number, kept * array.size, there);
      TR_TRY(got.status());
      const std::span<const std::byte> bytes = none;
      if (there != none) TR_TRY(write(array, number, kept * array.size, {&bytes, 1}));
    }
  }
  return {};
}

/// Removes the last step first, so that an interruption leaves the first steps whole. Removes times last:
/// they have to be written, and on a full disk the removals make room for that.
Status Objects::remove_from(const Layout& layout, std::int64_t step) {
  for (const Array& each : layout.arrays()) {
    if (!each.has_steps || each.in_chunk > 0) continue;
    Result<std::vector<std::int64_t>> found = numbers(each);
    TR_TRY(found.status());
    for (; !found->empty() && found->back() >= step; found->pop_back())
      TR_TRY(keyed_->remove(each.object(found->back())));
  }
  for (const Array& each : layout.arrays()) {
    if (each.in_chunk > 0) TR_TRY(forget_times(each, step));
  }
  return {};
}

Status Objects::copy_before(const Layout& layout, std::int64_t step, Objects& to) {
  for (const Array& each : layout.arrays()) {
    if (!each.has_steps) continue;
    const Result<std::vector<std::int64_t>> found = numbers(each);
    TR_TRY(found.status());
    for (const std::int64_t number : *found) {
      if (number * std::max<Index>(each.in_chunk, 1) >= step) continue;
      const Result<std::optional<Bytes>> size = size_of(each, number);
      TR_TRY(size.status());
      TR_TRY(to.keyed_->copy_from(directory(), each.object(number), size->value_or(0)));
    }
    if (each.in_chunk > 0) TR_TRY(to.forget_times(each, step));
  }
  return to.settle();
}

Status Objects::check_own(const Layout* layout) {
  const auto foreign = [&](const std::string& name) {
    return Status(Code::state, cat(directory(), ": is a directory with '", name,
                                   "', which no stream has written; move one of them away, or choose another "
                                   "name for the stream's"));
  };
  const auto is_metadata = [&](const std::string& name, std::string_view metadata) {
    return keyed_->finished_name(name) == metadata;
  };
  const Result<std::vector<std::string>> names = keyed_->list("");
  if (names.status().error_number() == ENOTDIR)
    return {Code::state, cat(directory(),
                             ": is a file, and a stream writes a directory of this name; move it "
                             "away, or choose another name")};
  TR_TRY(names.status());
  if (layout) TR_TRY(check_no_links(*layout));
  for (const std::string& name : *names) {
    // NFS keeps a removed file under a name with .nfs while a process has it open.
    if (name.starts_with(".nfs")) continue;
    // A new directory may hold the temporary file of its first object.
    if (is_metadata(name, begun_with) || (layout && is_metadata(name, group_key))) continue;
    const Array* const array = layout ? layout->find(name) : nullptr;
    if (array == nullptr) return foreign(name);
    const Result<std::vector<std::string>> inside = keyed_->list(name);
    TR_TRY(inside.status());
    for (const std::string& each : *inside) {
      if (!is_metadata(each, group_key) && !number_of(*array, each)) return foreign(cat(name, "/", each));
    }
  }
  return {};
}

Status Objects::remove_all(const Layout* layout) {
  TR_TRY(check_own(layout));
  keyed_->give_up_writes();
  if (layout) {
    const Result<bool> exists = keyed_->exists(std::string(group_key));
    TR_TRY(exists.status());
    if (*exists) TR_TRY(tell(*layout, 0));
    TR_TRY(keyed_->sync_keys());
    for (const Array& array : layout->arrays()) TR_TRY(keyed_->remove_group(array.name));
    TR_TRY(keyed_->sync_keys());
  }
  for (const std::string_view object : {group_key, begun_with}) {
    TR_TRY(keyed_->remove_if_there(std::string(object)));
    TR_TRY(keyed_->sync_keys());
  }
  return {};
}

}  // namespace tailrace::zarr
