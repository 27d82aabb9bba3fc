// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

namespace tailrace::storage {

/// The permissions of a new file, from which the system removes the umask of the process.
constexpr unsigned usual_permissions = 0666;

/// The owner of a file, and who may do what with it.
struct Rights {
  unsigned user = 0;
  unsigned group = 0;
  unsigned permissions = 0;
  bool has_list = false;  // an access control list grants or denies more
};

}  // namespace tailrace::storage
