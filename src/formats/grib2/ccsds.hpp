// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "formats/entropy/entropy.hpp"
#include "formats/grib2/packing.hpp"

// CCSDS packing (templates 5.42 and 7.42), with the same octets as from ecCodes. This module computes the
// codes of the values, and formats/entropy compresses them (libaec, which ecCodes uses, where the two do not
// agree). The reasons to do without ecCodes are time, and memory: ecCodes takes values as doubles, and holds
// the codes, the compressed data and the message of the whole record at once. Here only a portion of the
// codes is in memory at a time.
namespace tailrace::grib2 {

/// The parameters of libaec in a template 5.42.
struct CcsdsParameters {
  unsigned flags = 0;
  unsigned block = 0;     // codes that are compressed together
  unsigned interval = 0;  // blocks from one reference to the next

  /// Returns true if ecCodes passes these parameters to libaec unchanged, as it does with its own, and
  /// formats/entropy covers them.
  [[nodiscard]] bool usual() const;
  /// Returns what formats/entropy is asked for.
  [[nodiscard]] entropy::Parameters coder(int bits) const;
};
/// Reads the parameters from a prepared section 5. Returns zeros if the section has another template.
CcsdsParameters ccsds_parameters(const ByteVector& representation);

/// Returns the largest number of octets to which `count` codes of `bits` are compressed.
Bytes ccsds_bound(const CcsdsParameters& parameters, Index count, int bits);

/// Compresses in portions, and keeps the memory of a portion for the next record. Each thread has an object
/// of its own.
class CcsdsPacking {
 public:
  /// Who compresses: formats/entropy if it agrees with libaec, or one of them in any case (for tests).
  enum class Coder { agreed, own, libaec };
  explicit CcsdsPacking(Coder coder = Coder::agreed) : coder_(coder) {}

  /// Appends the compressed codes of all values. The parameters must be usual().
  template <typename Value>
  Status append(const CcsdsParameters& parameters, const Value* values, Index count, const Scaling& scaling,
                ByteVector& out);

  /// Returns the memory that this class needs for records of `count` codes of at most `bits`.
  static Bytes working_bytes(const CcsdsParameters& parameters, Index count, int bits);

 private:
  template <typename Code, typename Value>
  Status append_own(const CcsdsParameters& parameters, const Value* values, Index count,
                    const Scaling& scaling, ByteVector& out);
  template <typename Value>
  Status append_by_libaec(const CcsdsParameters& parameters, const Value* values, Index count,
                          const Scaling& scaling, ByteVector& out);

  Coder coder_;
  ByteVector codes_;
  ByteVector compressed_;
};

}  // namespace tailrace::grib2
