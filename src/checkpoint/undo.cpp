// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "checkpoint/undo.hpp"

#include <algorithm>
#include <limits>

#include "checkpoint/slots.hpp"
#include "journal/undo_file.hpp"

namespace tailrace::checkpoint {

Result<std::vector<journal::UndoName>> useless_undo_files(
    storage::Target& target, const std::string& name, const std::vector<std::string>& copies,
    const std::function<std::int64_t(const Copy&)>& oldest) {
  Result<std::vector<journal::UndoName>> undo = journal::find_undo_files(target, name);
  TR_TRY(undo.status());
  if (undo->empty()) return undo;
  std::int64_t needed = std::numeric_limits<std::int64_t>::max();
  for (const std::string& path : copies) {
    const Result<Copy> copy = read_directory(target, path);
    if (!copy.is_ok() && !is_damage(copy.status())) return copy.status();
    if (copy.is_ok()) needed = std::min(needed, oldest(*copy));
  }
  std::vector<journal::UndoName> useless;
  for (journal::UndoName& each : *undo) {
    if (each.generation < needed) useless.push_back(std::move(each));
  }
  return useless;
}

}  // namespace tailrace::checkpoint
