// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "api/c/fortran_files.hpp"

#include <cerrno>
#include <cstring>
#include <functional>
#include <numeric>
#include <string_view>

#include "api/c/arguments.hpp"
#include "api/c/arrays.hpp"
#include "api/c/files.hpp"
#include "api/c/state.hpp"
#include "engine/exchange/channel.hpp"
#include "faces/files/local_name.hpp"
#include "ground/base/text.hpp"
#include "ground/comm/end_job.hpp"

using namespace tailrace;
using namespace tailrace::capi;
using arrays::Array;
using arrays::Direction;
using files::Group;
using unformatted::RecordFile;

namespace {

RecordFile* records_of(tr_file* handle, const char* call) {
  if (file_of(handle, call) == nullptr) return nullptr;
  if (handle->records == nullptr) fail(Status(Code::state, cat(call, ": not an unformatted Fortran file")));
  return handle->records.get();
}

/// Runs `operation`, a function or a member, on an open file. Returns TR_END_F at the end of the file, which
/// Fortran distinguishes from an error.
template <typename Operation>
int on_records(tr_file* handle, const char* call, const Operation& operation) {
  RecordFile* const file = records_of(handle, call);
  if (file == nullptr) return TR_ERR_STATE;
  const Status status = std::invoke(operation, *file);
  if (status.is_ok()) return TR_OK;
  const int code = fail(status.in(call));
  const bool has_ended = file->has_ended() || status.error_number() == files::ended_with_file;
  return has_ended ? TR_END_F : code;
}

Index count_of(const tr_item_f& item) {
  Index count = 1;
  for (int d = 0; d < item.ndims; ++d) count *= item.extents[d];
  return count;
}

bool is_contiguous(const tr_item_f& item) {
  Bytes natural = item.element;
  for (int d = item.ndims - 1; d >= 0; --d) {
    if (item.extents[d] > 1 && item.strides[d] != natural) return false;
    natural *= item.extents[d];
  }
  return true;
}

/// Copies the elements of a replicated item, one after another, from its memory to `packed`, or with `back`
/// the other way.
void copy_elements(const tr_item_f& item, int dim, std::byte* at, std::byte*& packed, bool back) {
  if (dim == item.ndims) {
    const auto bytes = static_cast<std::size_t>(item.element);
    std::memcpy(back ? at : packed, back ? packed : at, bytes);
    packed += bytes;
    return;
  }
  for (Index i = 0; i < item.extents[dim]; ++i)
    copy_elements(item, dim + 1, at + i * item.strides[dim], packed, back);
}

ByteVector pack_item(const tr_item_f& item) {
  ByteVector packed(static_cast<std::size_t>(count_of(item) * item.element));
  std::byte* to = packed.data();
  copy_elements(item, 0, static_cast<std::byte*>(item.data), to, false);
  return packed;
}

void unpack_item(const tr_item_f& item, ByteVector& packed) {
  std::byte* from = packed.data();
  copy_elements(item, 0, static_cast<std::byte*>(item.data), from, true);
}

std::optional<layout::Section> section_of(const tr_item_f& item) {
  const int dims = item.section_dims;
  if (dims == 0) return std::nullopt;
  return layout::Section{list_of(item.start, dims), list_of(item.stop, dims), list_of(item.stride, dims)};
}

/// A distributed item. `array` may point to `halo`, so both live equally long.
struct DistributedItem {
  Array array;
  std::vector<Index> halo;
  Status status;
};

DistributedItem distributed_of(const tr_item_f& item) {
  DistributedItem made;
  if (item.layout == nullptr) {
    made.status = Status(Code::argument, "the layout was not made, or is freed");
    return made;
  }
  const streams::PlacedLayout& placed = item.layout->placed;
  made.array = array_of(whole_array(item.data, item.type, item.layout));
  made.array.section = section_of(item);
  if (item.ndims < 0) {
    made.status = Status(Code::argument, "a scalar has no layout");
    return made;
  }
  const std::size_t dims = placed.layout.shape().size();
  if (made.array.section && made.array.section->start.size() != dims) {
    made.status =
        Status(Code::argument, cat("the section has ", item.section_dims, " dimensions, the layout ", dims));
    made.array.section.reset();
    return made;
  }
  const session::Session* const session = state().session.get();
  const int owner = placed.layout.kind() == "replicated" ? 0 : session->rank();
  layout::Allocation allocation;
  allocation.level_axis = -1;
  if (placed.layout.is_box() || placed.layout.is_tiled()) allocation.halo = placed.halo;
  if (item.ndims > 0) {
    Result<layout::Allocation> matched =
        layout::match_extents(placed.layout, owner, std::move(allocation), list_of(item.extents, item.ndims));
    made.status = matched.status();
    if (!matched.is_ok()) return made;
    allocation = std::move(*matched);
    if (placed.layout.count(owner) > 0) made.array.strides = list_of(item.strides, item.ndims);
  }
  made.halo = allocation.halo;
  return made;
}

Status move_distributed_item(RecordFile& file, Direction direction, const tr_item_f& item) {
  DistributedItem made = distributed_of(item);
  made.array.halo = &made.halo;
  if (made.status.is_ok() && direction == Direction::read && file.file().mode().async &&
      !is_contiguous(item)) {
    made.status = Status(Code::argument,
                         "an asynchronous file reads into contiguous arrays only: what is passed instead of "
                         "another one may be a copy that is gone by the time of wait");
  }
  return file.move(made.array, direction, made.status);
}

Status move_replicated(RecordFile& file, Direction direction, const tr_item_f& item) {
  if (direction == Direction::write) return file.put(pack_item(item), item.unit);
  ByteVector packed(static_cast<std::size_t>(count_of(item) * item.element));
  TR_TRY(file.get(packed, item.unit));
  unpack_item(item, packed);
  return {};
}

bool is_local(std::string_view letters) { return letters.find_first_of("lLiI") != std::string_view::npos; }

tr_file* open_existing(const char* path, std::string_view action, const std::string& letters) {
  if (action == "read") return tr_fopen(path, ("rb" + letters).c_str());
  tr_file* const file = tr_fopen(path, ("r+b" + letters).c_str());
  const bool may_read = action.empty() && (errno == EACCES || errno == EROFS || errno == EPERM);
  return file != nullptr || !may_read ? file : tr_fopen(path, ("rb" + letters).c_str());
}

/// Opens a file by Fortran's status= (Fortran 2008, 9.5.6.18), in terms of C's modes.
tr_file* open_by_status(const char* path, std::string_view status, std::string_view action,
                        const std::string& letters, bool& is_new) {
  errno = 0;
  is_new = true;
  if (status == "new") {
    tr_file* const found = tr_fopen(path, ("rb" + letters).c_str());
    if (found != nullptr) {
      tr_fclose(found);
      fail_with_errno(io_error("open with status='new'", path, EEXIST));
      return nullptr;
    }
  }
  if (status == "old" || status == "unknown" || status.empty()) {
    is_new = false;
    tr_file* const found = open_existing(path, action, letters);
    if (found != nullptr || errno != ENOENT || status == "old" || action == "read") return found;
    is_new = true;
  }
  return tr_fopen(path, ("w+b" + letters).c_str());
}

/// Returns where a file that is opened for writing goes on, whatever its status=, or nothing if it does not
/// go on.
std::optional<journal::Position> recorded_position(const char* path, std::string_view action,
                                                   const char* letters) {
  if (action == "read") return std::nullopt;
  const session::Session& session = *state().session;
  Result<std::string> name = std::string(path);
  if (is_local(letters)) name = files::local_name(path, session.rank(), session.ranks());
  const journal::Position* const found = name.is_ok() ? state().outputs->files().find(*name) : nullptr;
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

/// Collective. Returns the size of the file at the open, or -1 if it has no positions.
Bytes size_of_file(files::File& file) {
  return ask(file, "size",
             [](std::FILE* stream) {
               const bool sized = ::fseeko(stream, 0, SEEK_END) == 0;
               const Bytes size = sized ? ::ftello(stream) : -1;
               if (sized) ::fseeko(stream, 0, SEEK_SET);
               return files::Outcome{size, 0, {}};
             })
      .value;
}

/// Moves an array between the ranks and memory of the I/O rank, which takes the place of a file.
Status move_to_memory(Group& group, const Array& array, std::byte* whole, Direction direction,
                      const Status& mine) {
  const std::string call =
      cat("a formatted ", direction == Direction::write ? "write" : "read", "(", array.text(), ")");
  const Result<exchange::Channel*> channel = group.channel(call);
  TR_TRY(channel.status());
  const Result<exchange::Ring*> ring = (*channel)->ring(false);
  TR_TRY(ring.status());
  const auto plan = guarded([&] { return arrays::make_plan(array, group.rank(), direction); });
  const Status planned = (mine.is_ok() ? plan.status() : mine).in(call).at({-1, -1, group.rank()});
  TR_TRY(group.agree({planned, call, {}}).status);
  return comm::committed(call, [&]() -> Status {
    const auto key = group.service().threads().new_key();
    const auto tally = std::make_shared<exchange::Tally>();
    exchange::Transfer transfer(**channel, **ring, *plan, 0, false, key);
    if (direction == Direction::write) {
      const exchange::WriteBytes writer = [whole](std::span<const std::byte> bytes, Bytes at) {
        std::memcpy(whole + at, bytes.data(), bytes.size());
        return Status();
      };
      transfer.write(array.data, writer, tally, nullptr);
    } else {
      const exchange::ReadBytes reader = [whole](std::span<std::byte> bytes, Bytes at) -> Result<Bytes> {
        std::memcpy(bytes.data(), whole + at, bytes.size());
        return static_cast<Bytes>(bytes.size());
      };
      transfer.read(array.data, reader, tally, false);
    }
    group.wait([&] { return group.service().threads().is_idle(key); }, call);
    return {};
  });
}

/// Copies a replicated item from the I/O rank's values to its memory `whole`, or with `back` from `whole` to
/// the values on every rank.
void copy_replicated(Group& group, const tr_item_f& item, std::byte* whole, bool back) {
  if (!back) {
    if (!group.is_io_rank()) return;
    const ByteVector packed = pack_item(item);
    std::memcpy(whole, packed.data(), packed.size());
    return;
  }
  files::Outcome said;
  if (group.is_io_rank()) said.data.assign(whole, whole + tr_bytes_f(&item));
  said = group.share(std::move(said), "a formatted read");
  unpack_item(item, said.data);
}

}  // namespace

int tr_open_f(const char* path, const char* status, const char* action, const char* letters, int sequential,
              int swapped, int marker, int at_end, tr_file** handle) {
  *handle = nullptr;
  if (session_for("open") == nullptr) return TR_ERR_STATE;
  if (!is_local(letters)) {
    const std::string call = cat("open(", path, ", status='", status, "', action='", action, "', mode='",
                                 letters, "', sequential ", sequential, ", swapped ", swapped, ", marker ",
                                 marker, ", append ", at_end, ")");
    const Status agreed = state().session->agree({Status(), call, {}}).status;
    if (!agreed.is_ok()) return fail(agreed);
  }
  bool is_new = false;
  const std::optional<journal::Position> from = recorded_position(path, action, letters);
  tr_file* const file = from ? tr_fopen(path, (std::string("r+b") + letters).c_str())
                             : open_by_status(path, status, action, letters, is_new);
  if (file == nullptr) return errno == EINVAL ? TR_ERR_ARGUMENT : TR_ERR_IO;
  const Bytes size = is_new ? 0 : size_of_file(*file->file);
  if (size < 0) {
    tr_fclose(file);
    return fail(Status(Code::argument, cat("open(", path, "): it has no positions, which records need")));
  }
  unformatted::Form form;
  form.sequential = sequential != 0;
  form.swapped = swapped != 0;
  form.marker = marker;
  form.at_end = at_end != 0;
  form.reads = std::string_view(action) != "write";
  form.writes = file->file->mode().writes();
  file->records = std::make_unique<RecordFile>(*file->file, form, size, from);
  *handle = file;
  return TR_OK;
}

int tr_begin_f(tr_file* handle, int reads) {
  return on_records(handle, reads != 0 ? "read" : "write", [&](RecordFile& file) {
    return file.begin(reads != 0 ? Direction::read : Direction::write);
  });
}

int tr_move_f(tr_file* handle, int reads, const tr_item_f* item) {
  return on_records(handle, reads != 0 ? "read" : "write", [&](RecordFile& file) {
    const Direction direction = reads != 0 ? Direction::read : Direction::write;
    const bool alone = !file.in_record();
    if (alone) TR_TRY(file.begin(direction));
    const Status moved = item->type != 0 ? move_distributed_item(file, direction, *item)
                                         : move_replicated(file, direction, *item);
    return alone ? file.end() : moved;
  });
}

int tr_in_record_f(tr_file* handle) {
  const RecordFile* const file = records_of(handle, "write");
  return file != nullptr && file->in_record() ? 1 : 0;
}

int tr_end_f(tr_file* handle) { return on_records(handle, "end", &RecordFile::end); }

int tr_backspace_f(tr_file* handle) { return on_records(handle, "backspace", &RecordFile::backspace); }

int tr_rewind_f(tr_file* handle) { return on_records(handle, "rewind", &RecordFile::rewind); }

int tr_endfile_f(tr_file* handle) { return on_records(handle, "endfile", &RecordFile::endfile); }

int tr_flush_f(tr_file* handle) { return on_records(handle, "flush", &RecordFile::flush); }

int tr_wait_f(tr_file* handle) { return on_records(handle, "wait", &RecordFile::wait); }

int tr_close_f(tr_file* handle, int removes) {
  RecordFile* const file = records_of(handle, "close");
  if (file == nullptr) return TR_ERR_STATE;
  const std::string path = file->file().path();
  const bool local = handle->file->owner().group == nullptr;
  const Status ended = file->finish();
  int code = tr_fclose(handle) == 0 ? TR_OK : TR_ERR_IO;
  if (!ended.is_ok()) code = fail(ended.in("close"));
  if (code != TR_OK || removes == 0) return code;
  if (!local) return tr_remove(path.c_str()) == 0 ? TR_OK : TR_ERR_IO;
  storage::Target& target = state().session->target();
  const Status removed = target.remove(path);
  return result(removed.is_ok() ? files::remove_sidecar(target, path) : removed);
}

int tr_seek_f(tr_file* handle, int64_t position) {
  return on_records(handle, "seek", [&](RecordFile& file) { return file.seek(position); });
}

int64_t tr_position_f(tr_file* handle) {
  const RecordFile* const file = records_of(handle, "inquire");
  return file == nullptr ? -1 : file->position();
}

int64_t tr_size_f(tr_file* handle) {
  const RecordFile* const file = records_of(handle, "inquire");
  return file == nullptr ? -1 : file->size();
}

int tr_is_local_f(tr_file* handle) {
  const RecordFile* const file = records_of(handle, "inquire");
  return file != nullptr && file->file().owner().group == nullptr ? 1 : 0;
}

int tr_set_subrecord_f(tr_file* handle, int64_t bytes) {
  RecordFile* const file = records_of(handle, "set_subrecord");
  if (file == nullptr) return TR_ERR_STATE;
  file->set_subrecord(bytes);
  return TR_OK;
}

int tr_formats_f(void) {
  return state().session != nullptr && state().session->rank() == Group::io_rank ? 1 : 0;
}

int64_t tr_bytes_f(const tr_item_f* item) {
  if (item->type == 0) return count_of(*item) * item->element;
  if (item->layout == nullptr) return 0;
  std::vector<Index> shape = item->layout->placed.layout.shape();
  if (const auto section = section_of(*item)) {
    const Result<std::vector<Index>> extents = section->shape();
    shape = extents.is_ok() ? *extents : std::vector<Index>{0};
  }
  return std::accumulate(shape.begin(), shape.end(), item->element, std::multiplies<>());
}

int tr_gather_f(const tr_item_f* item, void* whole, int back) {
  if (session_for("write") == nullptr) return TR_ERR_STATE;
  const std::shared_ptr<Group> group = group_of(session_comm(), "write");
  if (group == nullptr) return TR_ERR_MPI;
  if (item->type == 0) {
    copy_replicated(*group, *item, static_cast<std::byte*>(whole), back != 0);
    return TR_OK;
  }
  DistributedItem made = distributed_of(*item);
  made.array.halo = &made.halo;
  return result(move_to_memory(*group, made.array, static_cast<std::byte*>(whole),
                               back != 0 ? Direction::read : Direction::write, made.status));
}

int tr_share_f(void* data, int64_t bytes) {
  const std::shared_ptr<Group> group = group_of(session_comm(), "a formatted file");
  if (group == nullptr) return TR_ERR_STATE;
  const auto* const begin = static_cast<const std::byte*>(data);
  files::Outcome said;
  if (group->is_io_rank()) said.data.assign(begin, begin + bytes);
  said = group->share(std::move(said), "a formatted file");
  std::memcpy(data, said.data.data(), said.data.size());
  return TR_OK;
}
