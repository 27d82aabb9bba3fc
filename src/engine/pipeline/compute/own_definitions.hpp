// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/exchange/roster.hpp"
#include "engine/pipeline/messages.hpp"
#include "ground/layout/layout.hpp"
#include "ground/node/lane.hpp"

namespace tailrace::pipeline {

/// A descriptor on its way into a lane.
struct Told {
  node::Descriptor descriptor;
  ByteVector bytes;
  /// If set, these bytes follow in the lane. No other copy of them is made.
  std::shared_ptr<const ByteVector> behind{};
};

/// The definitions of one stream that a compute rank tells the servers: of the stream, its layouts and its
/// fields. All functions are local.
class OwnDefinitions {
 public:
  /// One field as the servers must know it. Fields on the same layout have the same `layout_id`.
  struct Field {
    const codec::FieldDefinition* definition = nullptr;
    ByteVector prepared;                     // codec::Codec::prepared; needed on compute rank 0 alone
    const layout::Layout* layout = nullptr;  // lasts as long as the stream
    std::int64_t layout_id = 0;
    bool in_parts = false;               // each rank knows its own indices alone
    std::span<const Index> own_indices;  // where the layout is in parts
  };

  OwnDefinitions(const exchange::Roster& roster, int me) : roster_(roster), me_(me) {}

  /// Gives the stream its number, which all entries name. Nothing is told of a stream with a new number yet.
  void set_stream(std::uint32_t stream);
  [[nodiscard]] std::uint32_t stream() const { return stream_; }
  /// Returns the entries that define the stream: one on compute rank 0, none on other ranks. `head` needs no
  /// stream number, and nothing that add() defines.
  [[nodiscard]] std::vector<Told> begin(Opening head) const;
  /// Returns the entries that define the stream's next field. All ranks have agreed on the field before.
  [[nodiscard]] std::vector<Told> add(const Field& field);
  /// Returns the entries with the values of a field without time, which all ranks have put: one on compute
  /// rank 0, none on other ranks.
  [[nodiscard]] std::vector<Told> add_values(int field, const std::shared_ptr<const ByteVector>& values);
  /// Returns the entries with an attribute that all ranks have given: one on compute rank 0, none on other
  /// ranks.
  [[nodiscard]] std::vector<Told> add_attribute(const codec::GivenAttribute& given);
  /// Returns the entry by which servers forget a stream that ends and was never begun.
  [[nodiscard]] Told forget() const;
  /// Returns the number of fields, of those without time whose values were put, and of given attributes.
  [[nodiscard]] int defined() const { return fields_ + with_values_ + attributes_; }
  /// Returns the compute rank whose puts are the put order: the first that has a share in every field.
  [[nodiscard]] int reference() const { return reference_; }

 private:
  [[nodiscard]] Told entry(Packer& packed) const;
  void add_layout(const Field& field, std::vector<Told>& told);
  [[nodiscard]] int number_of(const std::shared_ptr<const codec::Coordinates>& coordinates,
                              std::vector<Told>& told);
  void choose_reference();

  const exchange::Roster& roster_;
  const int me_;
  std::uint32_t stream_ = 0;
  using LayoutOfId = std::pair<std::int64_t, const layout::Layout*>;
  std::vector<LayoutOfId> layouts_;
  std::vector<codec::Coordinates> coordinates_;  // those told so far, without their values
  bool has_parts_ = false;
  int fields_ = 0;
  int with_values_ = 0;
  int attributes_ = 0;
  int reference_ = 0;
};

}  // namespace tailrace::pipeline
