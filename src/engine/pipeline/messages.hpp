// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/pipeline/handoff.hpp"
#include "engine/pipeline/method.hpp"
#include "engine/pipeline/policy.hpp"
#include "formats/codec/codec.hpp"
#include "ground/base/status.hpp"
#include "ground/base/text.hpp"

namespace tailrace::pipeline {

/// First word of every control message. Numbers up to 8 belong to comm, those from node::first_handed_message
/// on to node::MemoryGiver and session::Computing, which use the same line.
enum class Message : std::uint32_t {
  open = 10,         // home of compute rank 0 -> servers: a stream and all its definitions
  sequence = 11,     // root -> servers: put order
  ended = 12,        // server -> root: its compute ranks have ended a step
  encoded = 13,      // owner -> root: a chunk's size
  place = 14,        // root -> owner: the places of a chunk's records
  written = 15,      // owner -> root
  sync = 16,         // root -> owners: fsync a file; the first of them writes the rest of the step before
  synced = 17,       // owner -> root
  decided = 18,      // root -> servers: a verdict to pass on
  verdict = 25,      // server -> its compute ranks
  closed = 19,       // server -> root: its compute ranks closed the stream
  credit = 20,       // server -> compute rank whose lane it does not map: descriptors it is done with
  farewell = 21,     // server with compute ranks -> server 0: they have left, and the number of their streams
  finish = 22,       // server 0 -> servers: all ranks have left, and the number of streams
  statistics = 23,   // every rank -> server 0: counters of the report
  so_far = 26,       // server -> server 0: the counters of its ranks while the run goes on
  layout_part = 24,  // home -> servers: indices that one of its compute ranks has of an indexed layout
  forgotten = 29,    // home -> servers: the stream is closed and was never begun; its parts are not needed
  wanted = 27,       // server -> home of compute rank 0: a lane has come to a stream that is not open here
  opened = 28,       // server -> root: the stream is open here
  // With Method::is_collective:
  call = 31,        // root -> servers: the next collective call of a stream, and the server's part of it
  wants_turn = 32,  // root -> server 0: all servers may know the call
  turn = 33,        // server 0 -> servers: it is the call's turn, in the one order of all streams
  called = 34,      // server -> root: what became of the call there
  call_over = 35,   // root -> servers: the chunks of a call are not needed any more
  // With Method::takes_offsets:
  begun = 36,        // root -> servers: chunks of a step may take their offsets, or are left out
  taken = 37,        // owner -> root: the offsets that a chunk has taken, and what became of it
  add = 38,          // server -> root: an add to a counter, where there are no one-sided ones
  added = 39,        // root -> server: the counter's value before
  alive = 30,        // compute rank -> its server, server -> server 0: a compute rank has called the library
  wants_trial = 40,  // compute rank 0 -> server 0: all servers try whether they can append to a file together
  trial = 41,        // server 0 -> servers: the trial has its turn, in the order of the calls
  tried = 42,        // server -> compute rank 0: what became of it
  lanes = 43,        // compute rank 0 -> servers: the ranks have lanes of one more kind
  last = lanes
};

/// The calls that all servers of a session make together (comm::CollectiveFiles), and `append`, which one of
/// them makes.
enum class CallKind : std::uint32_t { open = 1, round = 2, sync = 3, close = 4, seek = 5, append = 6 };

/// A compute rank's data messages begin with the kind of its lane, and are descriptors with their bytes for
/// its server (node::LaneSender). A server's data messages begin with the stream, the sender and what they
/// hold:
enum class Data : std::uint32_t {
  pieces = 1,  // pieces of records, for the records' owner
  chunk = 2,   // the records of an encoded chunk, for the root, which writes them (Method::is_sent)
};

enum class VerdictKind : std::uint32_t {
  accepted = 1,  // every rank ended the step; the status tells failures up to then
  durable = 2,   // on storage and committed, or failed
  finished = 3,  // the stream is closed
};

/// First word of a definition's entry in a lane (node::Descriptor::Kind::define): who writes it, and what it
/// defines.
enum class Definition : std::uint32_t {
  stream = 1,       // compute rank 0: the stream
  layout = 2,       // compute rank 0: the next of its layouts
  field = 3,        // compute rank 0: the next of its fields
  part = 4,         // each compute rank: the indices that it owns of a layout
  forget = 5,       // each compute rank: the stream is closed and was never begun; tells if it had parts
  coordinates = 6,  // compute rank 0: the next coordinates that fields have
  values = 7,       // compute rank 0: the values of a field without time
  attribute = 8,    // compute rank 0: an attribute with its type
};

/// One entry of the put order, as the root announces it.
struct SequenceEntry {
  enum class Kind : std::uint32_t { begin = 1, record = 2, end_chunk = 3, end_step = 4, fence = 5 };
  Kind kind = Kind::begin;
  std::int32_t field = 0;
  std::int32_t level = 0;
  std::int32_t owner = 0;
  std::uint64_t chunk = 0;
  std::int64_t step = 0;  // fence: its number
  std::int64_t lead = 0;
  std::int64_t interval_start = 0;
  std::int64_t calls = 0;  // record: what the reference has told of its puts in an interval
};

/// A stream with all its definitions. Every server has it before the first step.
struct Opening {
  std::uint32_t stream = 0;
  int reference = 0;  // the compute rank whose puts are the put order
  codec::StreamDefinition definition;
  Policy policy;
  std::string method_name;  // of pipeline::methods(); "": the default one
  std::string hints;        // of collective files, as parse_hints() reads them
  std::string why_method;   // with method=auto: why the method was taken
  Handoff handoff = Handoff::automatic;
  std::int64_t previous_lead = 0;  // of the step before the first one put
  std::string ledger;              // packed by streams: what the ledger needs to keep the files
  /// The coordinates of all fields, each once. The root alone gets their values, and those of fields without
  /// time, since it writes the heads; weights go to all servers.
  std::vector<std::shared_ptr<const codec::Coordinates>> coordinates;
  /// Their georeferences hold nothing but coordinates: the prepared headers hold the rest.
  std::vector<codec::FieldDefinition> fields;
  std::vector<ByteVector> prepared;  // per field: codec::Codec::prepared
  std::vector<int> layout_of;        // per field: index into layouts
  std::vector<ByteVector> layouts;   // packed; of a layout in parts only the shape
  std::vector<char> in_parts;        // 1: every compute rank tells its own indices (Definition::part)
  // Not packed. Set by a server that takes the stream over:
  bool is_taken_over = false;   // another server has opened it
  std::int64_t first_step = 0;  // the first step without a verdict; the one before it was at previous_lead
  /// Packed. The number of the stream's first step: not 0 if the stream follows one of the same name and run,
  /// whose definitions have changed.
  std::int64_t begins_with = 0;

  /// Returns the name by which reports and messages know the stream: its file pattern, the first line of the
  /// packed ledger.
  [[nodiscard]] std::string name() const { return ledger.substr(0, ledger.find('\n')); }
  /// Names a step of the stream in messages.
  [[nodiscard]] std::string step_text(std::int64_t lead) const {
    return cat("stream ", name(), ", step at ", definition.time.at(lead));
  }
  void pack(Packer& out, bool with_values) const;
  static Result<Opening> unpack(Unpacker& in);
  /// Pack and unpack everything but the coordinates, the fields, the layouts and the reference.
  void pack_head(Packer& out) const;
  static Result<Opening> unpack_head(Unpacker& in);
  static void pack_field(Packer& out, const codec::FieldDefinition& field,
                         std::span<const std::byte> prepared, int layout, int coordinates);
  Status add_field(Unpacker& in);
  Status add_coordinates(Unpacker& in);
  /// Takes the values of a field without time.
  Status add_values(Unpacker& in);
  /// Returns true if the values of the field are the weights of another.
  [[nodiscard]] bool is_weights(const std::string& field) const;
  Status add_attribute(Unpacker& in);
  /// Returns the number of fields, of those without time whose values have come, and of given attributes.
  [[nodiscard]] std::int32_t defined() const;
  static void pack_layout(Packer& out, std::span<const std::byte> layout, bool in_parts);
  void add_layout(Unpacker& in);
  /// Returns how the stream's records are dealt out, placed and written.
  [[nodiscard]] const Method& method() const { return **find_method(method_name); }
  /// Returns a codec that knows the fields.
  [[nodiscard]] Result<std::unique_ptr<codec::Codec>> codec() const;
};

}  // namespace tailrace::pipeline
