// Strong ids: distinct types that cannot be mixed up, as cheap as the integer inside.
#pragma once
#include <compare>
#include <cstdint>

namespace octavo {

template <class Tag, class Rep = std::uint32_t>
struct Id {
  Rep value{};
  friend constexpr auto operator<=>(const Id&, const Id&) = default;
};

using TokenId = Id<struct TokenTag, std::int32_t>;
using RequestId = Id<struct RequestTag, std::uint64_t>;  // given by Engine::submit, never reused

}  // namespace octavo
