// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "codec/grib2_packing.hpp"

// CCSDS packing (templates 5.42 and 7.42), octet for octet as ecCodes does it: our codes, compressed by the
// libaec that ecCodes uses. Ours because ecCodes needs the values as doubles and holds the codes, the
// compressed data and the message of the whole record at once, where a portion of the codes is enough.
namespace tailrace::codec::grib2 {

/// What a template 5.42 asks of libaec.
struct CcsdsParameters {
  unsigned flags = 0;
  unsigned block = 0;     // codes that are compressed as one
  unsigned interval = 0;  // blocks from one reference to the next

  /// Whether these are the usual ones, of which we know that ecCodes passes them on as they are. Never in a
  /// build without libaec.
  [[nodiscard]] bool usual() const;
};
/// As a prepared section 5 has them; zeros if it is none of template 5.42.
CcsdsParameters ccsds_parameters(const ByteVector& representation);

/// The most octets that `count` codes of `bits` are compressed to.
Bytes ccsds_bound(const CcsdsParameters& parameters, Index count, int bits);

/// Compresses in portions, whose memory it keeps. One per thread.
class CcsdsPacking {
 public:
  /// Appends the compressed codes of all values.
  template <typename Value>
  Status append(const CcsdsParameters& parameters, const Value* values, Index count, const Scaling& scaling,
                ByteVector& out);

  /// The memory that this and libaec need for records of `count` codes of at most `bits`.
  static Bytes working_bytes(const CcsdsParameters& parameters, Index count, int bits);

 private:
  ByteVector codes_;
  ByteVector compressed_;
};

}  // namespace tailrace::codec::grib2
