// The server's JSON: objects keep their order, because chat templates print what the client sent.
#pragma once
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace octavo {

using Json = nlohmann::ordered_json;

/// Always valid UTF-8: bytes that are not become U+FFFD.
inline std::string to_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// JSON has no infinity and no NaN; clients expect -9999.0 for "impossible".
inline double json_logprob(float logprob) { return std::isfinite(logprob) && logprob > -9999.0F ? logprob : -9999.0; }

}  // namespace octavo
