// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <string>
#include <vector>

#include "arena.hpp"

namespace tailrace::run {

/// An open file as the keeper alone knows it.
struct KeptFile {
  int descriptor = -1;
  bool is_writable = false;
  bool is_dense = false;      // the file has no holes before `stored`
  bool can_reserve = true;    // the file system knows fallocate
  std::int64_t stored = 0;    // the file's size on storage
  std::int64_t reserved = 0;  // the end of the room that storage has made for the file
  int descriptions = 0;       // open descriptions of the file
  std::string path;
};

/// The keeper's calls of storage.
struct Traffic {
  std::uint64_t loads = 0;
  std::uint64_t loaded_bytes = 0;
  std::uint64_t stores = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t syncs = 0;
};

/// The pages of all files of a group, as the keeper sees them. One thread uses it. Calls return 0 or an
/// errno.
class KeptPages {
 public:
  ~KeptPages();
  /// Makes the arena with frames for `memory` bytes; a frame takes its memory from the system when it is
  /// first used. Makes fewer frames if the limit on the size of files does not allow as many. Fails with
  /// EFBIG if the limit does not allow 8.
  int make(std::uint64_t memory, std::uint64_t page);
  [[nodiscard]] Arena& arena() { return *arena_; }
  [[nodiscard]] int descriptor() const { return memory_; }
  [[nodiscard]] const Traffic& traffic() const { return traffic_; }

  /// Gives the regular file behind `descriptor` a number, or finds the number that it has. Takes the
  /// descriptor over unless it fails. Returns ENFILE if `most_files` files are open already.
  int open(int descriptor, const std::string& path, std::uint32_t& number);
  /// Stores the changed pages, and forgets the file.
  int close(std::uint32_t number);
  /// Bytes of a page, from `from` to before `to`.
  struct Range {
    std::uint32_t from;
    std::uint32_t to;
  };
  /// Brings bytes of a page in. With `is_written` a program will write them: makes room for them on storage.
  /// With `is_stuck` a program says that the holder of the page's frame does not go on: gives the page
  /// another frame if that is so. Returns 0, an errno, page_moved or too_many_left (wire.hpp).
  int bring_in(std::uint32_t file, std::uint64_t page, Range wanted, bool is_written, bool is_stuck);
  /// Gives the file a size of `size` bytes: cuts it, or adds zeros.
  int cut(std::uint32_t file, std::int64_t size);
  /// Stores the changed pages. A page that cannot be stored stays in memory.
  int store(std::uint32_t file);
  /// Stores the changed pages, and synchronises the file.
  int sync(std::uint32_t file);
  /// Makes room on storage for the bytes from `from` to before `to`.
  int reserve(std::uint32_t file, std::int64_t from, std::int64_t to);
  [[nodiscard]] KeptFile& kept(std::uint32_t file) { return files_[file]; }

 private:
  int take_frame(std::uint32_t& number);
  int make_frame(std::uint32_t& number);
  bool evict(std::uint32_t number);
  int hold(std::uint32_t number, bool must_move = false);
  void let_go(std::uint32_t number);
  int leave(std::uint32_t number, Holder holder, bool must_move);
  void collect_left();
  void take_out(std::uint32_t number, std::uint64_t key);
  int bring_in_new(std::uint32_t file, std::uint64_t page, Range wanted, std::uint32_t& number);
  int bring_in_more(std::uint32_t file, std::uint64_t page, Range wanted, std::uint32_t number);
  [[nodiscard]] Range widened(std::uint32_t file, std::uint64_t page, Range wanted);
  [[nodiscard]] std::uint32_t stored_of(const KeptFile& file, std::uint64_t page) const;
  int load(const KeptFile& file, std::uint64_t page, std::uint32_t number, Range range, bool is_fresh);
  int make_room(KeptFile& file, std::uint64_t page, std::uint32_t number, std::uint32_t end);
  int store_around(std::uint32_t number);
  int store_run(std::uint32_t file, std::uint64_t page, std::uint64_t& next);
  int write_run(KeptFile& file, std::int64_t offset, std::vector<iovec>& parts);
  static int give_back_room(const KeptFile& file, std::int64_t size);
  void link(std::uint32_t number, std::uint64_t key);
  bool unlink(std::uint32_t number);
  void clear_from(std::uint32_t number, std::uint32_t end);
  [[nodiscard]] std::vector<std::uint32_t> frames_of(std::uint32_t file, std::uint64_t first_page);

  int memory_ = -1;
  std::uint64_t largest_file_ = 0;  // the limit on the size of files (RLIMIT_FSIZE) of this process
  Holder me_ = 0;
  Arena* arena_ = nullptr;
  std::uint32_t made_ = 0;
  std::uint32_t most_ = 0;
  std::uint32_t hand_ = 0;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> left_;  // frames without a page whose holder does not go on
  std::vector<KeptFile> files_;
  Traffic traffic_;
};

}  // namespace tailrace::run
