// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "engine/pipeline/context.hpp"

namespace tailrace::pipeline {

/// The definitions that this server knows of streams that are not open here yet. Each server passes on to all
/// servers the indices that its own ranks tell, at once. The home of compute rank 0 collects all other
/// definitions of a stream. It passes them on to all servers when a lane of any server has come to the
/// stream. A server opens a stream once it has all its definitions.
class Definitions {
 public:
  /// `open` gets each stream whose definitions are all here. `give_up` gets an error that leaves ranks
  /// waiting. The constructor registers for messages of the context's line.
  Definitions(Context& context, std::function<void(Opening)> open,
              std::function<void(const Status&)> give_up);

  /// Takes the next entry, or the next piece of one, of compute rank `c`, whose home is this server.
  void on_entry(int c, const node::Descriptor& descriptor, std::span<const std::byte> bytes);
  /// Asks for the definitions of a stream that is not open here. The lane of a rank has come to `begun`, the
  /// stream's beginning or end, which tells how many fields the stream has, and its reference.
  void want(const node::Descriptor& begun);
  /// Counts the entries that this server keeps: 0 when every stream is open or forgotten.
  [[nodiscard]] std::size_t kept() const {
    return collected_.size() + wanted_.size() + asked_.size() + told_.size() + parts_.size();
  }

 private:
  struct Wanted {
    std::uint32_t stream = 0;
    std::int32_t fields = 0;
    std::int32_t reference = 0;
  };
  using Parts = std::map<std::pair<int, int>, std::vector<Index>>;  // by layout and compute rank

  void take_entry(int c, std::uint32_t stream, Unpacker& in);
  Status collect(std::uint32_t stream, Definition kind, Unpacker& in);
  void pass_on(Message message, std::uint32_t stream, int c, std::span<const std::byte> bytes);
  void on_wanted(const Wanted& wanted);
  void tell_if_complete(std::uint32_t stream);
  void tell(Opening opening);
  void on_open(Unpacker& in);
  void on_part(Unpacker& in);
  void on_forgotten(Unpacker& in);
  void open_if_whole(std::uint32_t stream);
  Status join_parts(Opening& opening);

  Context& context_;
  std::function<void(Opening)> open_;
  std::function<void(const Status&)> give_up_;
  std::map<int, ByteVector> beginnings_;  // by compute rank: of an entry whose end has not come yet
  // At the home of compute rank 0:
  std::map<std::uint32_t, Opening> collected_;
  std::map<std::uint32_t, Wanted> wanted_;  // streams that servers have asked for
  std::uint32_t newest_ = 0;                // the last stream that rank 0 has told of
  // On every server:
  std::set<std::uint32_t> asked_;
  std::map<std::uint32_t, Opening> told_;  // streams that miss parts of their layouts
  std::map<std::uint32_t, Parts> parts_;
};

}  // namespace tailrace::pipeline
