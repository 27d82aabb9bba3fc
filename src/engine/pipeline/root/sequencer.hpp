// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "engine/pipeline/messages.hpp"
#include "formats/codec/codec.hpp"
#include "ground/node/lane_memory.hpp"

namespace tailrace::pipeline {

/// Makes the put order of a stream from its reference rank's lane. Deals the records out to their owners:
/// runs of about the same predicted cost (chunks), to the owners in turn.
class Sequencer {
 public:
  Sequencer(const Opening& opening, const codec::Codec& codec, std::vector<int> owners);
  /// Takes the next descriptor or fence, and appends to `fresh` what it adds to the put order. A chunk of
  /// several records takes at most `most` bytes. Returns an error if the step puts a record twice for which
  /// the format has one place. The record is in the put order all the same, since every rank puts it.
  Status add(const node::Descriptor& descriptor, Bytes most, std::vector<SequenceEntry>& fresh);

 private:
  void begin_step(const node::Descriptor& descriptor, std::vector<SequenceEntry>& fresh);
  void add_record(const node::Descriptor& descriptor, Bytes most, std::vector<SequenceEntry>& fresh);
  void close_chunk(std::vector<SequenceEntry>& fresh);
  Status check_is_new(const node::Descriptor& descriptor);

  const Opening& opening_;
  const codec::Codec& codec_;
  std::vector<int> owners_;  // servers
  bool takes_once_ = false;  // the format has one place for each record of a step
  double chunk_cost_ = 0;    // the highest cost of one chunk
  double open_cost_ = 0;
  Bytes open_bound_ = 0;
  bool chunk_open_ = false;
  std::uint64_t chunk_ = 0;  // number of the open chunk, or of the next
  std::size_t owner_ = 0;    // position of the same chunk's in owners_
  std::int64_t step_ = -1;
  std::int64_t lead_ = 0;
  std::int64_t previous_lead_ = 0;
  std::set<std::pair<int, int>> put_;  // fields and levels put in the step, if takes_once_
};

}  // namespace tailrace::pipeline
