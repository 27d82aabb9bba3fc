// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/stores/moving.hpp"

#include <cerrno>
#include <memory>
#include <optional>
#include <vector>

#include "ground/base/text.hpp"
#include "ground/storage/paths.hpp"

namespace tailrace::stores {

namespace {

using storage::KeyedObjects;
using storage::OpenMode;

constexpr std::string_view copying_text = "copying\n", copied_text = "copied\n";

/// The object that says how far a store of this name is moved.
class Note {
 public:
  Note(const storage::ObjectsAt& objects, const std::string& to)
      : directory_(objects(storage::parent_of(storage::tidy_path(to)))),
        key_(to.substr(to.rfind('/') + 1) + ".moving") {}
  Result<std::optional<std::string>> text() { return directory_->text_of(key_, Bytes{1} << 10); }
  Status put(std::string_view text) {
    const KeyedObjects::Text note{key_, std::string(text)};
    TR_TRY(directory_->put({&note, 1}));
    return directory_->sync_keys();
  }
  Status remove() {
    TR_TRY(directory_->remove_if_there(key_));
    return directory_->sync_keys();
  }
  [[nodiscard]] std::string name() const { return directory_->name_of(key_); }

 private:
  const std::unique_ptr<KeyedObjects> directory_;
  const std::string key_;
};

}  // namespace

Result<Moving::State> Moving::state_of(const std::string& to) {
  Note note(objects_, to);
  const Result<std::optional<std::string>> text = note.text();
  TR_TRY(text.status());
  if (!text->has_value()) return State::none;
  if (**text == copying_text) return State::copying;
  if (**text == copied_text) return State::copied;
  return Status(Code::corrupt, cat(note.name(),
                                   ": expected the note of a stream about a store that is moved; "
                                   "move the object away"));
}

Status Moving::note(const std::string& to, State state) {
  return Note(objects_, to).put(state == State::copying ? copying_text : copied_text);
}

Status Moving::move(const std::string& from, const std::string& to) {
  const Result<State> before = state_of(to);
  TR_TRY(before.status());
  if (*before == State::none) {
    const Result<bool> has_new = objects_(from)->is_made();
    TR_TRY(has_new.status());
    if (!*has_new) return io_error("rename", cat(from, " to ", to), ENOENT);
    TR_TRY(note(to, State::copying));
  }
  return end(from, to);
}

Status Moving::end(const std::string& from, const std::string& to) {
  const Result<State> state = state_of(to);
  TR_TRY(state.status());
  if (*state == State::none) return {};
  if (*state == State::copying) {
    // The old store goes only while there is a new one.
    const Result<bool> has_new = objects_(from)->exists(begun_with_);
    TR_TRY(has_new.status());
    if (!*has_new)
      return {Code::corrupt, cat(Note(objects_, to).name(), ": says that ", from, " takes the place of ", to,
                                 ", and ", from, " is not there; ", to,
                                 " stays as it is. If it is the store "
                                 "to keep, remove the note")};
    TR_TRY(remove_store(to));
    TR_TRY(copy_all(from, to));
    TR_TRY(note(to, State::copied));
  }
  TR_TRY(remove_store(from));
  return Note(objects_, to).remove();
}

/// Puts the object first that shows whose the store is, and the metadata of the whole store last.
Status Moving::copy_all(const std::string& from, const std::string& to) {
  const std::unique_ptr<KeyedObjects> source = objects_(from), copy = objects_(to);
  const auto copy_one = [&](const std::string& key) -> Status {
    const Result<std::optional<Bytes>> size = source->size_of(key);
    TR_TRY(size.status());
    return size->has_value() ? copy->copy_from(from, key, **size) : io_error("copy", key, ENOENT);
  };
  TR_TRY(copy->make());
  TR_TRY(copy_one(begun_with_));
  const Result<std::vector<std::string>> names = source->list("");
  TR_TRY(names.status());
  std::vector<std::string> metadata;
  for (const std::string& name : *names) {
    const Result<std::vector<std::string>> inside = source->list(name);
    if (inside.status().error_number() == ENOTDIR) {
      if (name != begun_with_) metadata.push_back(name);
      continue;
    }
    TR_TRY(inside.status());
    for (const std::string& each : *inside) TR_TRY(copy_one(cat(name, "/", each)));
  }
  TR_TRY(copy->sync());
  for (const std::string& name : metadata) TR_TRY(copy_one(name));
  return copy->sync();
}

Status Moving::remove_store(const std::string& path) {
  const Result<bool> is_made = objects_(path)->is_made();
  TR_TRY(is_made.status());
  if (!*is_made) return {};
  Result<std::unique_ptr<codec::Store>> store = opener_(path, OpenMode::existing);
  TR_TRY(store.status());
  return (*store)->remove();
}

Result<std::string> Moving::place_of(const std::string& path, const std::string& from,
                                     const std::string& to) {
  const Result<State> state = state_of(to);
  TR_TRY(state.status());
  if (*state == State::none) return path;
  if (path == from) return from + ".gone";
  return *state == State::copying ? from : to;
}

}  // namespace tailrace::stores
