// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace tailrace::cf {

/// The members of a JSON object, in their order. nlohmann's ordered_map compares each new key with all keys
/// before it, and reading a store of 40,000 arrays took minutes. In this map a table of hashes finds the keys
/// once there are more than `few` members.
template <class Key, class T, class Less = std::less<Key>,
          class Allocator = std::allocator<std::pair<const Key, T>>>
class IndexedMap : public nlohmann::ordered_map<Key, T, Less, Allocator> {
  using Base = nlohmann::ordered_map<Key, T, Less, Allocator>;

 public:
  using key_type = Key;
  using mapped_type = T;
  using typename Base::const_iterator;
  using typename Base::iterator;
  using typename Base::size_type;
  using typename Base::value_type;

  using Base::Base;

  std::pair<iterator, bool> emplace(const key_type& key, T&& value) {
    index();
    const size_type found = position(key);
    if (found < this->size()) return {at_position(found), false};
    this->emplace_back(key, std::forward<T>(value));
    index();
    return {at_position(found), true};
  }
  T& operator[](const key_type& key) { return emplace(key, T{}).first->second; }
  const T& operator[](const key_type& key) const { return at(key); }

  T& at(const key_type& key) { return found_or_throw(*this, key); }
  const T& at(const key_type& key) const { return found_or_throw(*this, key); }
  size_type count(std::string_view key) const { return position(key) < this->size() ? 1 : 0; }
  iterator find(std::string_view key) {
    index();
    return at_position(position(key));
  }
  const_iterator find(std::string_view key) const {
    return this->begin() + static_cast<std::ptrdiff_t>(position(key));
  }

  size_type erase(std::string_view key) {
    const iterator found = find(key);
    if (found == this->end()) return 0;
    erase(found);
    return 1;
  }
  iterator erase(iterator first) { return erase(first, std::next(first)); }
  iterator erase(iterator first, iterator last) {
    forget();
    return Base::erase(first, last);
  }
  void clear() {
    forget();
    Base::clear();
  }

  std::pair<iterator, bool> insert(value_type&& value) {
    return emplace(value.first, std::move(value.second));
  }
  std::pair<iterator, bool> insert(const value_type& value) { return emplace(value.first, T(value.second)); }
  template <typename Iterator>
  void insert(Iterator first, Iterator last) {
    for (; first != last; ++first) insert(*first);
  }

 private:
  static constexpr size_type few = 16;
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  iterator at_position(size_type number) { return this->begin() + static_cast<std::ptrdiff_t>(number); }

  template <typename Map>
  static auto& found_or_throw(Map& map, std::string_view key) {
    const auto found = map.find(key);
    if (found == map.end()) throw std::out_of_range("key not found");
    return found->second;
  }

  void forget() {
    places_.clear();
    indexed_ = 0;
  }

  [[nodiscard]] size_type slot_of(std::string_view key) const {
    return std::hash<std::string_view>()(key) & (places_.size() - 1);
  }

  void put(size_type number) {
    size_type slot = slot_of(at_position(number)->first);
    while (places_[slot] != none) slot = (slot + 1) & (places_.size() - 1);
    places_[slot] = static_cast<std::uint32_t>(number);
  }

  /// Adds the members that are new since the last call to the table.
  void index() {
    if (this->size() <= few || indexed_ == this->size()) return;
    if (this->size() * 2 > places_.size() || indexed_ > this->size()) {
      size_type room = 4 * few;
      while (room < 4 * this->size()) room *= 2;
      places_.assign(room, none);
      indexed_ = 0;
    }
    for (; indexed_ < this->size(); ++indexed_) put(indexed_);
  }

  /// Returns the number of the member, or size() if there is none.
  [[nodiscard]] size_type position(std::string_view key) const {
    const auto& members = static_cast<const std::vector<value_type, Allocator>&>(*this);
    if (indexed_ != this->size() || places_.empty()) {
      size_type number = 0;
      while (number < members.size() && members[number].first != key) ++number;
      return number;
    }
    for (size_type slot = slot_of(key); places_[slot] != none; slot = (slot + 1) & (places_.size() - 1)) {
      if (members[places_[slot]].first == key) return places_[slot];
    }
    return this->size();
  }

  std::vector<std::uint32_t> places_;  // the table: numbers of members by hash; empty while there are few
  size_type indexed_ = 0;              // how many members are in the table
};

}  // namespace tailrace::cf
