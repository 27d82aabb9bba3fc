// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/ccsds.hpp"

#include <algorithm>
#include <span>

#include "formats/entropy/libaec.hpp"

namespace tailrace::grib2 {

namespace {

constexpr std::size_t representation_length = 25;  // template 5.42
constexpr std::uint64_t ccsds_template = 42;
// The number of codes that are computed and compressed at once: few enough to stay in the nearest cache
// between the two.
constexpr Index portion = 4096;
// libaec gets many intervals at once, because it takes the interval after each portion code by code.
constexpr Index portion_of_libaec = 65536;
constexpr Bytes state_of_libaec = 4096;

Index interval_of(const CcsdsParameters& parameters) {
  return static_cast<Index>(parameters.block) * parameters.interval;
}

Index whole_intervals(const CcsdsParameters& parameters, Index codes) {
  const Index interval = std::max<Index>(interval_of(parameters), 1);
  return std::max<Index>(codes / interval, 1) * interval;
}

}  // namespace

CcsdsParameters ccsds_parameters(const ByteVector& representation) {
  if (representation.size() < representation_length || get_number(&representation[9], 2) != ccsds_template)
    return {};
  return {static_cast<unsigned>(get_number(&representation[21], 1)),
          static_cast<unsigned>(get_number(&representation[22], 1)),
          static_cast<unsigned>(get_number(&representation[23], 2))};
}

entropy::Parameters CcsdsParameters::coder(int bits) const {
  return {bits, static_cast<int>(block), static_cast<int>(interval)};
}

bool CcsdsParameters::usual() const { return flags == entropy::usual_flags && entropy::covers(coder(1)); }

Bytes ccsds_bound(const CcsdsParameters& parameters, Index count, int bits) {
  CcsdsParameters same = parameters;
  same.block = std::max(same.block, 8U);
  return entropy::bound(same.coder(bits), count);
}

Bytes CcsdsPacking::working_bytes(const CcsdsParameters& parameters, Index count, int bits) {
  const bool is_own = entropy::agrees_with_libaec();
  const Index held = std::min(count, whole_intervals(parameters, is_own ? portion : portion_of_libaec));
  const Bytes each = is_own ? width_of_code(bits) : entropy::libaec_width(bits);
  const Bytes libaec = is_own ? 0 : 2 * 4 * interval_of(parameters) + state_of_libaec;
  return held * each + ccsds_bound(parameters, held, bits) + entropy::libaec_spare + libaec;
}

template <typename Value>
Status CcsdsPacking::append(const CcsdsParameters& parameters, const Value* values, Index count,
                            const Scaling& scaling, ByteVector& out) {
  const bool is_own = coder_ == Coder::own || (coder_ == Coder::agreed && entropy::agrees_with_libaec());
  if (!is_own) return append_by_libaec(parameters, values, count, scaling, out);
  return scaling.bits <= entropy::most_narrow_bits
             ? append_own<std::uint16_t>(parameters, values, count, scaling, out)
             : append_own<std::uint32_t>(parameters, values, count, scaling, out);
}

template <typename Code, typename Value>
Status CcsdsPacking::append_own(const CcsdsParameters& parameters, const Value* values, Index count,
                                const Scaling& scaling, ByteVector& out) {
  const Index most = std::min(count, whole_intervals(parameters, portion));
  const entropy::Parameters coder = parameters.coder(scaling.bits);
  codes_.resize(static_cast<std::size_t>(most) * sizeof(Code));
  compressed_.resize(static_cast<std::size_t>(entropy::bound(coder, most) + entropy::encoder_spare));
  auto* const codes = reinterpret_cast<Code*>(codes_.data());
  entropy::Encoder encoder(coder);
  for (Index at = 0; at < count; at += most) {
    const Index here = std::min(most, count - at);
    write_codes(values + at, here, scaling, codes);
    const Bytes length = encoder.encode(codes, here, at + here == count, compressed_.data());
    out.insert(out.end(), compressed_.begin(), compressed_.begin() + length);
  }
  return {};
}

template <typename Value>
Status CcsdsPacking::append_by_libaec(const CcsdsParameters& parameters, const Value* values, Index count,
                                      const Scaling& scaling, ByteVector& out) {
  const Index most = std::min(count, whole_intervals(parameters, portion_of_libaec));
  const int width = entropy::libaec_width(scaling.bits);
  codes_.resize(static_cast<std::size_t>(most * width));
  compressed_.resize(
      static_cast<std::size_t>(ccsds_bound(parameters, most, scaling.bits) + entropy::libaec_spare));
  entropy::LibaecEncoder encoder({parameters.flags, parameters.block, parameters.interval, scaling.bits});
  for (Index at = 0; at < count; at += most) {
    const Index here = std::min(most, count - at);
    if (width == 1)
      write_codes(values + at, here, scaling, reinterpret_cast<std::uint8_t*>(codes_.data()));
    else if (width == 2)
      write_codes(values + at, here, scaling, reinterpret_cast<std::uint16_t*>(codes_.data()));
    else
      write_codes(values + at, here, scaling, reinterpret_cast<std::uint32_t*>(codes_.data()));
    const std::span<const std::byte> codes(codes_.data(), static_cast<std::size_t>(here * width));
    const Result<Bytes> length = encoder.encode(codes, at + here == count, compressed_);
    TR_TRY(length.status());
    out.insert(out.end(), compressed_.begin(), compressed_.begin() + *length);
  }
  return {};
}

template Status CcsdsPacking::append(const CcsdsParameters&, const float*, Index, const Scaling&,
                                     ByteVector&);
template Status CcsdsPacking::append(const CcsdsParameters&, const double*, Index, const Scaling&,
                                     ByteVector&);

}  // namespace tailrace::grib2
