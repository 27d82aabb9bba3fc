// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "capi/outputs.hpp"

#include "capi/state.hpp"

namespace tailrace::capi {

ByteVector SessionOutputs::positions() const { return {}; }

bool SessionOutputs::are_settled(const ByteVector&) const { return true; }

Status SessionOutputs::resume(const ByteVector&) { return {}; }

}  // namespace tailrace::capi
