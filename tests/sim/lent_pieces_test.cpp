// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Records that are encoded where a rank's array lies, without a copy before.
#include <gtest/gtest.h>

#include "engine/pipeline/server/encoding.hpp"
#include "fibre_world.hpp"
#include "ground/sim/disk.hpp"
#include "ground/storage/memory.hpp"

namespace tailrace::sim {
namespace lent_pieces_test {

constexpr Index elements = 20;

/// A codec that writes values as they are, but is not asked to put them together in parts. It notes where the
/// values of its last record lay.
class NotingCodec final : public codec::Codec {
 public:
  NotingCodec(ElementType type, bool only_reads) : type_(type), only_reads_(only_reads) {}

  Status define(const codec::FieldDefinition&) override { return {}; }
  [[nodiscard]] std::unique_ptr<codec::Encoder> encoder() const override {
    return std::make_unique<NotingEncoder>(*this);
  }
  [[nodiscard]] bool only_reads(int) const override { return only_reads_; }
  [[nodiscard]] ElementType assembled_type(int) const override { return type_; }
  [[nodiscard]] double cost(int) const override { return 1; }
  [[nodiscard]] Bytes encoded_bound(int) const override { return 8 * elements; }
  [[nodiscard]] Bytes working_bytes(int) const override { return 0; }

  mutable const std::byte* values = nullptr;

 private:
  struct NotingEncoder final : codec::Encoder {
    explicit NotingEncoder(const NotingCodec& its) : codec(its) {}
    Status encode(const codec::RecordKey&, std::byte* values, Index count, ByteVector& out) override {
      codec.values = values;
      out.insert(out.end(), values, values + count * size_of(codec.type_));
      return {};
    }
    const NotingCodec& codec;
  };

  ElementType type_;
  bool only_reads_;
};

/// A lane whose only piece lies in the array of a rank.
class LentPiece final : public node::LaneReader {
 public:
  explicit LentPiece(std::span<const std::byte> piece) : piece_(piece) {}
  [[nodiscard]] std::uint64_t head() const override { return 1; }
  [[nodiscard]] const node::Descriptor& at(std::uint64_t) const override { return descriptor_; }
  [[nodiscard]] std::span<const std::byte> bytes(std::uint64_t, ByteVector&) const override { return piece_; }
  [[nodiscard]] bool may_stay(std::uint64_t) const override { return true; }
  void place(std::uint64_t, std::span<const layout::Rows>, const layout::Stretch&) const override {}
  void release(std::uint64_t) override {}
  [[nodiscard]] bool is_full() const override { return false; }

 private:
  std::span<const std::byte> piece_;
  node::Descriptor descriptor_;
};

/// A server of one rank, which owns the first `owned` elements of a field and lends an array that begins
/// `past` bytes behind an aligned address.
struct LendingSite {
  LendingSite(ElementType type, std::size_t past, bool only_reads, Index owned)
      : codec(new NotingCodec(type, only_reads)),
        piece(memory + past, static_cast<std::size_t>(owned * size_of(type))) {
    for (std::size_t i = 0; i < piece.size(); ++i) memory[past + i] = static_cast<std::byte>(i * 7);
    context.streams = 1;
    context.workspace = 1000;
    stream.codec.reset(codec);
    codec::FieldDefinition field;
    field.name = "a";
    field.shape = {elements};
    field.type = type;
    field.missing = 0;
    stream.opening.fields.push_back(field);
    stream.opening.layout_of.push_back(0);
    stream.plans.emplace_back(*layout::Layout::tiles(field.shape, {{{{0}, {owned}}}}, true), roster, 0);
    context.lanes.emplace(0, pipeline::LaneCursor(std::make_unique<LentPiece>(piece)));
  }

  /// Returns the bytes of the record.
  ByteVector encode() {
    pipeline::Encoding encoding(stream);
    pipeline::SequenceEntry record{pipeline::SequenceEntry::Kind::record, 0};
    record.chunk = 1;
    encoding.announce(record);
    encoding.take({context.lanes.at(0).pass(), record, 0, false, {{0, 0, true}}});
    do {
      while (scheduler.run_one()) continue;
    } while (threads.poll());
    pipeline::Encoded chunk = encoding.hand_on(1);
    const ByteVector bytes = chunk.records.at(0).bytes;
    encoding.forget(1, std::move(chunk));
    return bytes;
  }

  alignas(8) std::byte memory[8 * elements + 8] = {};
  NotingCodec* codec;  // the stream's
  std::span<const std::byte> piece;
  FibreWorld world{1, 1};
  Scheduler scheduler{1};
  SimThreads threads{scheduler, 1, nullptr, [] {}};
  pipeline::OpenFiles files{storage::memory_target()};
  pipeline::Statistics statistics;
  exchange::Roster roster{{0}, {0}, {0}, {0}, {0}, {1}, true};
  comm::Line line{world.board(0), comm::line_number::session,
                  std::make_shared<const comm::Members>(std::vector<int>{0})};
  pipeline::Context context{line, roster, 0, threads, files, {}, 0, 0, statistics, {}};
  pipeline::OpenStream stream{context, {}};
};

/// Expects that the record has the right bytes, and that its encoder read them from the array, or not.
void expect_place(bool in_array, ElementType type, std::size_t past, bool only_reads = true,
                  Index owned = elements) {
  SCOPED_TRACE(testing::Message() << "elements of " << size_of(type) << " bytes, " << past
                                  << " behind an aligned address, " << owned << " owned");
  LendingSite site(type, past, only_reads, owned);
  ByteVector expected(site.piece.begin(), site.piece.end());
  expected.resize(static_cast<std::size_t>(elements * size_of(type)));  // no one's elements are 0
  EXPECT_EQ(site.encode(), expected);
  EXPECT_EQ(site.codec->values == site.piece.data(), in_array);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(site.codec->values) % static_cast<std::size_t>(size_of(type)),
            0U);
}

TEST(sim_lent_pieces, a_whole_record_is_encoded_where_it_lies_if_it_may_be_read_there) {
  for (const ElementType type : {ElementType::f32, ElementType::f64}) {
    expect_place(true, type, 0);
    expect_place(false, type, 1);
    expect_place(false, type, static_cast<std::size_t>(size_of(type)) / 2);
    expect_place(true, type, static_cast<std::size_t>(size_of(type)));
    expect_place(false, type, 0, false);
    expect_place(false, type, 0, true, elements - 1);
  }
}

}  // namespace lent_pieces_test
}  // namespace tailrace::sim
