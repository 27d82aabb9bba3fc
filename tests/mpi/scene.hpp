// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Helpers for tests on several ranks: a field whose values are computed from field, lead, level and element;
// arrays that hold it in every layout and allocation; and the bytes that a file of the field must have.
#pragma once

#include <tailrace.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/mpi_test.hpp"

namespace tailrace::scene {

constexpr tr_index ny = 11;
constexpr tr_index nx = 13;
constexpr tr_index levels = 3;

/// Returns the value of one element: smooth, different everywhere, of both signs, between -1000 and 1000.
double value(int field, std::int64_t lead, tr_index level, tr_index element);

/// Appends `number` as an element of `type`, in this machine's byte order.
void append(int type, double number, std::vector<std::byte>& out);
tr_index element_bytes(int type);

/// Appends one record of a raw file.
void append_record(int field, int type, std::int64_t lead, tr_index level, std::vector<std::byte>& out);

/// The layouts and allocations that tests try.
inline const std::vector<std::string> kinds = {"block",   "halo",       "ikj",      "fastest",
                                               "nproma",  "cyclic",     "weighted", "boxes",
                                               "indexed", "replicated", "callback", "nproma_indexed"};

/// One rank's array of a field under one of `kinds`.
class Array {
 public:
  /// Collective over the compute ranks. error() is empty if all calls have succeeded.
  Array(const std::string& kind, MPI_Comm compute, int type);
  ~Array() { tr_layout_free(&layout_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  [[nodiscard]] tr_layout* layout() const { return layout_; }
  /// Returns the options that tell tr_stream_define the allocation.
  [[nodiscard]] const std::string& options() const { return options_; }
  [[nodiscard]] const void* data() const { return bytes_.data(); }
  [[nodiscard]] void* data() { return bytes_.data(); }
  [[nodiscard]] const std::string& error() const { return error_; }
  /// Returns the global number of an owned element.
  [[nodiscard]] tr_index element(tr_index owned) const { return elements_[static_cast<std::size_t>(owned)]; }
  [[nodiscard]] tr_index owned() const { return static_cast<tr_index>(elements_.size()); }
  /// Sets the owned elements to the field's values, and all others (halo, padding, a replica that is not
  /// written) to NaN or nonsense.
  void fill(int field, std::int64_t lead);
  /// Sets one owned element of one level.
  void set(tr_index owned, tr_index level, double number);
  /// Returns one owned element of one level, if the elements are TR_F32 or TR_F64.
  [[nodiscard]] double get(tr_index owned, tr_index level) const;

 private:
  void make_box(const std::string& kind, int rank, int ranks);
  void make_scattered(const std::string& kind, int rank, int ranks);
  void own_box(const tr_index* halo, int level_axis);
  [[nodiscard]] tr_index place(tr_index owned, tr_index level) const;
  void keep(int code);

  int type_;
  tr_layout* layout_ = nullptr;
  std::string options_;
  std::string error_;
  std::vector<tr_index> elements_;  // global numbers of the owned elements, in packed order
  std::vector<tr_index> offsets_;   // their offsets in the first level, in elements
  tr_index level_stride_ = 0;
  tr_index nproma_ = 0;
  tr_index size_ = 0;  // elements of the array
  bool is_replica_ = false;
  std::vector<std::byte> bytes_;
};

/// Return the rank in and the size of a communicator.
int rank_of(MPI_Comm comm);
int size_of(MPI_Comm comm);

/// Collective over the world. Sleeps while it waits, so that ranks that take no part in a case leave the
/// cores to the others.
void quiet_barrier();
/// Returns the bytes of a file, or nothing if there is none. For a directory returns names and bytes of all
/// files in it.
std::vector<std::byte> contents(const std::string& path);
/// Makes a directory of this program's own below the current one; rank 0 of the world empties it. Collective
/// over the world.
std::string fresh_directory(const std::string& name);
/// Collective over `comm`. Returns true if all ranks have the same text.
bool same_text(MPI_Comm comm, const std::string& text);
/// The georeference of the scene's grid.
extern const char* const grid_keys;

}  // namespace tailrace::scene
