#include "server/openai_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "server/field_reader.h"

namespace octavo {
namespace {

constexpr std::uint32_t kMaxTokens = 1U << 30;
constexpr std::uint32_t kMaxLogprobs = 20;
constexpr std::size_t kMaxStops = 64;
constexpr std::size_t kMaxPrompts = 1024;

/// Well-known fields that would change the answer and that this server does not serve: told, not ignored.
constexpr std::array kUnsupported{
    "suffix",
    "structured_outputs",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "grammar",
    "json_schema",
    "bad_words",
    "allowed_token_ids",
    "logits_processors",
    "truncate_prompt_tokens",
    "prompt_logprobs",
    "use_beam_search",
    "prompt_embeds",
    "chat_template",
    "functions",
    "audio",
};

bool is_nothing(const Json& value) {
  return value == Json(false) || value == Json(0) || ((value.is_string() || value.is_structured()) && value.empty()) ||
         value == Json("");
}

void refuse_unsupported(FieldReader& in) {
  for (const char* name : kUnsupported) {
    const Json* value = in.find(name);
    if (value == nullptr || is_nothing(*value)) continue;
    in.fail(name, ErrorCode::kUnsupported, fmt::format("{} is not supported by this server. Leave it out.", name));
  }
}

void read_seed(FieldReader& in, std::optional<std::uint64_t>& seed) {
  const Json* value = in.find("seed");
  if (value == nullptr) return;
  if (!value->is_number_integer()) return in.refuse("seed", *value, "a whole number of 64 bits");
  seed = value->is_number_unsigned() ? value->get<std::uint64_t>()
                                     : static_cast<std::uint64_t>(value->get<std::int64_t>());
}

void read_logit_bias(FieldReader& in, std::uint32_t vocab_size, std::vector<std::pair<TokenId, float>>& out) {
  const Json* map = in.find("logit_bias");
  if (map == nullptr) return;
  if (!map->is_object()) return in.refuse("logit_bias", *map, "an object from token ids to numbers from -100 to 100");
  for (const auto& [key, bias] : map->items()) {
    std::uint32_t id = 0;
    const auto [end, failed] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (failed != std::errc{} || end != key.data() + key.size() || id >= vocab_size) {
      return in.fail("logit_bias", ErrorCode::kInvalidArgument,
                     fmt::format("logit_bias names token {}, but this model's token ids are 0 to {}.", shown(Json(key)),
                                 vocab_size - 1));
    }
    const double value = bias.is_number() ? bias.get<double>() : NAN;
    if (!(value >= -100 && value <= 100)) {
      return in.fail(
          "logit_bias", ErrorCode::kInvalidArgument,
          fmt::format("logit_bias of token {} is {}, but must be a number from -100 to 100.", id, shown(bias)));
    }
    out.emplace_back(TokenId{static_cast<std::int32_t>(id)}, static_cast<float>(value));
  }
}

void read_stream_options(FieldReader& in, GenerationCall& call) {
  const Json* options = in.find("stream_options");
  if (options == nullptr) return;
  if (!options->is_object()) return in.refuse("stream_options", *options, "an object");
  FieldReader inner(*options);
  inner.read("include_usage", call.include_usage);
  inner.read("continuous_usage_stats", call.continuous_usage);
  if (inner.error()) in.fail("stream_options", inner.error()->code, "stream_options: " + inner.error()->message);
}

void read_response_format(FieldReader& in) {
  const Json* format = in.find("response_format");
  if (format == nullptr) return;
  const Json* type = format->is_object() ? FieldReader(*format).find("type") : nullptr;
  if (type == nullptr || !type->is_string()) return in.refuse("response_format", *format, "an object with a type");
  if (*type != "text") {
    in.fail("response_format", ErrorCode::kUnsupported,
            fmt::format("response_format {} is not supported by this server, only \"text\" is.", shown(*type)));
  }
}

void read_cache_salt(FieldReader& in, std::string& salt) {
  const Json* value = in.find("cache_salt");
  if (value == nullptr) return;
  const std::size_t bytes = value->is_string() ? value->get_ref<const std::string&>().size() : 0;
  if (bytes == 0 || bytes > kMaxCacheSaltBytes) {  // an empty one would share with all who have none
    return in.refuse("cache_salt", *value, fmt::format("a string of 1 to {} bytes", kMaxCacheSaltBytes));
  }
  salt = value->get<std::string>();
}

void read_deadline(FieldReader& in, std::optional<std::chrono::milliseconds>& deadline) {
  std::optional<std::int64_t> milliseconds;
  in.read("deadline_ms", milliseconds, {1, static_cast<double>(kMaxDeadline.count())});
  if (milliseconds) deadline = std::chrono::milliseconds(*milliseconds);
}

void read_shared(FieldReader& in, std::uint32_t vocab_size, GenerationCall& call) {
  SamplingParams& params = call.params;
  in.read("model", call.model);
  in.read("n", params.n, {1, 128});
  in.read("max_tokens", call.max_tokens, {0, kMaxTokens});
  in.read("max_completion_tokens", call.max_tokens, {0, kMaxTokens});
  in.read("min_tokens", params.min_tokens, {0, kMaxTokens});
  in.read("temperature", params.temperature, {0, 100});
  in.read("top_p", params.top_p, {0, 1, true});
  in.read("top_k", params.top_k, {-1, kMaxTokens});
  in.read("min_p", params.min_p, {0, 1});
  in.read("repetition_penalty", params.repetition_penalty, {0, 100, true});
  in.read("presence_penalty", params.presence_penalty, {-2, 2});
  in.read("frequency_penalty", params.frequency_penalty, {-2, 2});
  read_logit_bias(in, vocab_size, params.logit_bias);
  read_seed(in, params.seed);
  in.read("stop", params.stop, kMaxStops);
  in.read("stop_token_ids", params.stop_token_ids, vocab_size);
  in.read("include_stop_str_in_output", params.include_stop_str_in_output);
  in.read("ignore_eos", params.ignore_eos);
  in.read("skip_special_tokens", params.skip_special_tokens);
  in.read("priority", call.priority, {-1e9, 1e9});
  read_cache_salt(in, call.cache_salt);
  read_deadline(in, call.deadline);
  in.read("stream", call.stream);
  read_stream_options(in, call);
  read_response_format(in);
  in.read("add_special_tokens", call.add_special_tokens);
  in.read("return_token_ids", call.return_token_ids);
  in.read("return_tokens_as_token_ids", call.tokens_as_ids);
  refuse_unsupported(in);

  std::uint32_t best_of = params.n;
  in.read("best_of", best_of, {1, 128});
  if (best_of != params.n) {
    in.fail("best_of", ErrorCode::kUnsupported,
            "best_of is not supported by this server. Leave it out or set it to n.");
  }
  if (call.max_tokens && params.min_tokens > *call.max_tokens) {
    in.fail("min_tokens", ErrorCode::kInvalidArgument,
            fmt::format("min_tokens is {}, but must not exceed max_tokens, {}.", params.min_tokens, *call.max_tokens));
  }
}

// Completions ----------------------------------------------------------------------------------------------------

/// One prompt: a string or a list of ids.
void add_prompt(FieldReader& in, const Json& prompt, std::uint32_t vocab_size, CompletionCall& call) {
  if (prompt.is_string()) {
    call.prompts.emplace_back(prompt.get<std::string>());
    return;
  }
  TokenList list = read_token_ids(prompt, vocab_size);
  if (list.wrong != nullptr) {
    return in.fail("prompt", ErrorCode::kInvalidArgument,
                   fmt::format("prompt holds {} where a token id is expected; this model's token ids are 0 to {}.",
                               shown(*list.wrong), vocab_size - 1));
  }
  call.prompts.emplace_back(std::move(list.ids));
}

void read_prompts(FieldReader& in, std::uint32_t vocab_size, CompletionCall& call) {
  const char* const wanted = "a string, a list of strings, a list of token ids, or a list of lists of token ids";
  const Json* prompt = in.find("prompt");
  if (prompt == nullptr)
    return in.fail("prompt", ErrorCode::kInvalidArgument, fmt::format("prompt is missing; it must be {}.", wanted));
  if (prompt->is_string()) return add_prompt(in, *prompt, vocab_size, call);
  if (!prompt->is_array() || prompt->empty()) return in.refuse("prompt", *prompt, wanted);
  if (prompt->front().is_number()) return add_prompt(in, *prompt, vocab_size, call);
  if (prompt->size() > kMaxPrompts) {
    return in.fail(
        "prompt", ErrorCode::kInvalidArgument,
        fmt::format("prompt is a list of {} prompts, but at most {} are taken at once.", prompt->size(), kMaxPrompts));
  }
  for (const Json& item : *prompt) {
    if (item.type() != prompt->front().type() || !(item.is_string() || (item.is_array() && !item.empty()))) {
      return in.refuse("prompt", *prompt, wanted);
    }
    add_prompt(in, item, vocab_size, call);
  }
}

// Chat -----------------------------------------------------------------------------------------------------------

/// Text parts become one string, a line each.
Result<Json> flat_content(const Json& parts) {
  std::string text;
  for (const Json& part : parts) {
    const Json* type = part.is_object() ? FieldReader(part).find("type") : nullptr;
    const Json* part_text = part.is_object() ? FieldReader(part).find("text") : nullptr;
    if (type != nullptr && *type != "text") {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("messages: content parts of type {} are not supported, only \"text\" is.", shown(*type)),
                   "messages"};
    }
    if (part_text == nullptr || !part_text->is_string()) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("messages: a content part is {}, but must be {{\"type\": \"text\", \"text\": \"...\"}}.",
                               shown(part)),
                   "messages"};
    }
    if (&part != &parts.front()) text += '\n';
    text += part_text->get_ref<const std::string&>();
  }
  return Json(std::move(text));
}

/// OpenAI sends a call's arguments as a string of JSON; templates want the object.
void open_arguments(Json& message) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return;
  for (Json& call : *calls) {
    if (!call.is_object() || !call.contains("function") || !call["function"].is_object()) continue;
    Json& function = call["function"];
    if (!function.contains("arguments") || !function["arguments"].is_string()) continue;
    auto arguments = parse_json(function["arguments"].get_ref<const std::string&>());
    if (arguments && arguments->is_object()) function["arguments"] = std::move(*arguments);
  }
}

constexpr std::array kRoles{"system", "developer", "user", "assistant", "tool"};
constexpr const char* kRoleList = R"("system", "developer", "user", "assistant" or "tool")";

Result<Json> normal_message(const Json& given, std::size_t index) {
  const auto wrong = [&](const std::string& what) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("messages[{}] {}", index, what), "messages"};
  };
  if (!given.is_object()) return wrong(fmt::format("is {}, but must be an object.", shown(given)));
  FieldReader in(given);
  const Json* role = in.find("role");
  if (role == nullptr) return wrong(fmt::format("has no role; it must be {}.", kRoleList));
  if (std::find(kRoles.begin(), kRoles.end(), *role) == kRoles.end())
    return wrong(fmt::format("has the role {}, but it must be {}.", shown(*role), kRoleList));

  Json message = given;
  const Json* content = in.find("content");
  if (content == nullptr) {
    if (*role != "assistant") return wrong("has no content; it must be a string or a list of text parts.");
    message["content"] = in.find("tool_calls") != nullptr ? Json(nullptr) : Json("");
  } else if (content->is_array()) {
    OCTAVO_TRY(message["content"], flat_content(*content));
  } else if (!content->is_string()) {
    return wrong(fmt::format("has content {}, but it must be a string or a list of text parts.", shown(*content)));
  }
  open_arguments(message);
  if (in.find("reasoning") != nullptr && in.find("reasoning_content") == nullptr)
    message["reasoning_content"] = message["reasoning"];
  return message;
}

void read_messages(FieldReader& in, ChatCall& call) {
  const Json* messages = in.find("messages");
  if (messages == nullptr)
    return in.fail("messages", ErrorCode::kInvalidArgument, "messages is missing; it must be a list of messages.");
  if (!messages->is_array() || messages->empty())
    return in.refuse("messages", *messages, "a list of at least one message");
  call.messages = Json::array();
  for (std::size_t i = 0; i < messages->size(); ++i) {
    auto message = normal_message((*messages)[i], i);
    if (!message) return in.fail("messages", message.error().code, message.error().message);
    call.messages.push_back(std::move(*message));
  }
}

/// Tools reach the template; calls in the output are not parsed, so a forced call cannot be promised.
void read_tools(FieldReader& in, ChatCall& call) {
  const Json* tools = in.find("tools");
  if (tools != nullptr && !tools->is_array()) return in.refuse("tools", *tools, "a list of tools");
  for (std::size_t i = 0; tools != nullptr && i < tools->size(); ++i) {
    if ((*tools)[i].is_object()) continue;
    return in.fail("tools", ErrorCode::kInvalidArgument,
                   fmt::format("tools[{}] is {}, but must be an object.", i, shown((*tools)[i])));
  }
  const Json* choice = in.find("tool_choice");
  if (choice != nullptr && *choice != "auto" && *choice != "none") {
    return in.fail(
        "tool_choice", ErrorCode::kUnsupported,
        fmt::format("tool_choice {} is not supported by this server, only \"auto\" and \"none\" are.", shown(*choice)));
  }
  const bool wanted = tools != nullptr && !tools->empty() && (choice == nullptr || *choice != "none");
  if (wanted) call.tools = *tools;
}

}  // namespace

Result<CompletionCall> parse_completion(const Json& body, std::uint32_t vocab_size) {
  if (!body.is_object()) return Error{ErrorCode::kInvalidArgument, "The body must be a JSON object.", {}};
  FieldReader in(body);
  CompletionCall call;
  read_shared(in, vocab_size, call);
  read_prompts(in, vocab_size, call);
  in.read("logprobs", call.params.logprobs, {0, kMaxLogprobs});
  in.read("echo", call.echo);
  if (call.max_tokens == 0U && !call.echo) {
    in.fail("max_tokens", ErrorCode::kInvalidArgument, "max_tokens is 0, but must be at least 1 unless echo is true.");
  }
  if (in.error()) return *in.error();
  return call;
}

Result<ChatCall> parse_chat(const Json& body, std::uint32_t vocab_size) {
  if (!body.is_object()) return Error{ErrorCode::kInvalidArgument, "The body must be a JSON object.", {}};
  FieldReader in(body);
  ChatCall call;
  call.add_special_tokens = false;  // the template writes them
  read_shared(in, vocab_size, call);
  read_messages(in, call);
  read_tools(in, call);

  bool logprobs = false;
  std::optional<std::uint32_t> top;
  in.read("logprobs", logprobs);
  in.read("top_logprobs", top, {0, kMaxLogprobs});
  if (logprobs) call.params.logprobs = top.value_or(0);
  if (!logprobs && top.value_or(0) > 0) {
    in.fail("top_logprobs", ErrorCode::kInvalidArgument, "top_logprobs needs logprobs to be true.");
  }
  if (call.max_tokens == 0U)
    in.fail("max_tokens", ErrorCode::kInvalidArgument, "max_tokens is 0, but must be at least 1.");

  in.read("continue_final_message", call.continue_final_message);
  call.add_generation_prompt = !call.continue_final_message;
  in.read("add_generation_prompt", call.add_generation_prompt);
  if (call.continue_final_message && call.add_generation_prompt) {
    in.fail("continue_final_message", ErrorCode::kInvalidArgument,
            "continue_final_message and add_generation_prompt cannot both be true.");
  }
  call.template_kwargs = Json::object();
  std::string effort;
  in.read("reasoning_effort", effort);
  if (!effort.empty()) call.template_kwargs["reasoning_effort"] = effort;
  if (const Json* kwargs = in.find("chat_template_kwargs")) {
    if (!kwargs->is_object())
      in.refuse("chat_template_kwargs", *kwargs, "an object");
    else
      call.template_kwargs.update(*kwargs);
  }
  if (in.error()) return *in.error();
  return call;
}

}  // namespace octavo
