#include "running_server.h"

namespace octavo {
namespace {

FakeEngineConfig says(std::string script) {
  FakeEngineConfig config;
  config.script = std::move(script);
  config.chat_template = kChatTemplate;
  return config;
}

TEST(Completions, WholeAnswer) {
  const RunningServer running(says("Hello"));
  const Reply reply = running.post("/v1/completions", {{"prompt", "abc"}, {"max_tokens", 20}});
  ASSERT_EQ(reply.status, 200U) << reply.body;
  const json body = reply.json();
  EXPECT_EQ(body["object"], "text_completion");
  EXPECT_EQ(body["model"], "fake");
  EXPECT_EQ(body["system_fingerprint"], "fp_fake");
  EXPECT_TRUE(body["id"].get<std::string>().starts_with("cmpl-"));
  EXPECT_EQ(body["choices"][0], (json{{"index", 0},
                                      {"text", "Hello"},
                                      {"logprobs", nullptr},
                                      {"finish_reason", "stop"},
                                      {"stop_reason", nullptr}}));
  EXPECT_EQ(body["usage"], (json{{"prompt_tokens", 4},
                                 {"completion_tokens", 6},
                                 {"total_tokens", 10},
                                 {"prompt_tokens_details", {{"cached_tokens", 0}}}}));
}

TEST(Completions, DefaultsToSixteenTokens) {
  const RunningServer running;
  const json body = running.post("/v1/completions", {{"prompt", "abc"}}).json();
  EXPECT_EQ(body["choices"][0]["text"].get<std::string>().size(), 16U);
  EXPECT_EQ(body["choices"][0]["finish_reason"], "length");
}

TEST(Completions, ParametersReachTheEngine) {
  const RunningServer running;
  const json request{{"prompt", {1, 2, 3}},
                     {"max_tokens", 3},
                     {"temperature", 0.5},
                     {"top_p", 0.9},
                     {"top_k", 40},
                     {"min_p", 0.1},
                     {"seed", -1},
                     {"stop", "#"},
                     {"presence_penalty", 1.5},
                     {"frequency_penalty", -1},
                     {"repetition_penalty", 1.25},
                     {"ignore_eos", true},
                     {"min_tokens", 2},
                     {"stop_token_ids", {7}},
                     {"priority", -5},
                     {"logit_bias", {{"65", -3.5}}},
                     {"skip_special_tokens", false},
                     {"include_stop_str_in_output", true},
                     {"user", "ignored"},
                     {"unknown", {1, 2}}};
  ASSERT_EQ(running.post("/v1/completions", request).status, 200U);
  const Request seen = running.engine.seen().at(0);
  EXPECT_EQ(seen.prompt, (std::vector<TokenId>{{1}, {2}, {3}}));
  EXPECT_EQ(seen.priority, -5);
  const SamplingParams& params = seen.params;
  EXPECT_EQ(params.max_tokens, 3U);
  EXPECT_FLOAT_EQ(params.temperature, 0.5F);
  EXPECT_FLOAT_EQ(params.top_p, 0.9F);
  EXPECT_EQ(params.top_k, 40);
  EXPECT_FLOAT_EQ(params.min_p, 0.1F);
  EXPECT_EQ(params.seed, ~std::uint64_t{0});
  EXPECT_EQ(params.stop, std::vector<std::string>{"#"});
  EXPECT_FLOAT_EQ(params.presence_penalty, 1.5F);
  EXPECT_FLOAT_EQ(params.frequency_penalty, -1.0F);
  EXPECT_FLOAT_EQ(params.repetition_penalty, 1.25F);
  EXPECT_TRUE(params.ignore_eos);
  EXPECT_EQ(params.min_tokens, 2U);
  EXPECT_EQ(params.stop_token_ids, std::vector<TokenId>{{7}});
  ASSERT_EQ(params.logit_bias.size(), 1U);
  EXPECT_EQ(params.logit_bias[0], (std::pair<TokenId, float>{{65}, -3.5F}));
  EXPECT_FALSE(params.skip_special_tokens);
  EXPECT_TRUE(params.include_stop_str_in_output);
}

TEST(Completions, ListsOfPromptsAndChoicesArePromptMajor) {
  const RunningServer running;
  const json two = running.post("/v1/completions", {{"prompt", {"a", "c"}}, {"n", 2}, {"max_tokens", 1}}).json();
  ASSERT_EQ(two["choices"].size(), 4U);
  const auto letter = [&](int i) { return two["choices"][static_cast<std::size_t>(i)]["text"].get<std::string>()[0]; };
  for (int i = 0; i < 4; ++i) EXPECT_EQ(two["choices"][static_cast<std::size_t>(i)]["index"], i);
  EXPECT_EQ(letter(1), letter(0) + 1) << "the second choice of the first prompt";
  EXPECT_EQ(letter(2), letter(0) + 2) << "the first choice of the second prompt";
  EXPECT_EQ(letter(3), letter(0) + 3);
  EXPECT_EQ(two["usage"]["prompt_tokens"], 4);
  EXPECT_EQ(two["usage"]["completion_tokens"], 4);

  const json ids = running.post("/v1/completions", {{"prompt", {{97}, {98, 99}}}, {"max_tokens", 1}}).json();
  EXPECT_EQ(ids["choices"].size(), 2U);
  EXPECT_EQ(ids["usage"]["prompt_tokens"], 3);
}

TEST(Completions, LogprobsHoldTheTokenItselfAndNoInfinity) {
  const RunningServer running(says("ab\xC3\xA9"));
  const Reply reply = running.post("/v1/completions", {{"prompt", "x"}, {"max_tokens", 4}, {"logprobs", 2}});
  const json logprobs = reply.json()["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["tokens"], (json{"a", "b", "bytes:\\xc3", "bytes:\\xa9"}));
  EXPECT_EQ(logprobs["text_offset"][1], 1);
  EXPECT_EQ(logprobs["token_logprobs"][0], -0.5);
  EXPECT_EQ(logprobs["top_logprobs"][0], (json{{"b", -0.25}, {"c", -9999.0}, {"a", -0.5}}));
}

TEST(Completions, LikelihoodOfAPromptAsHarnessesAskForIt) {
  const RunningServer running;
  const json request{{"prompt", {{97, 98, 99}}}, {"echo", true}, {"max_tokens", 1}, {"logprobs", 1},
                     {"temperature", 0},         {"seed", 1234}};
  const json choice = running.post("/v1/completions", request).json()["choices"][0];
  EXPECT_TRUE(choice["text"].get<std::string>().starts_with("abc"));
  EXPECT_EQ(choice["text"].get<std::string>().size(), 4U);
  EXPECT_EQ(choice["logprobs"]["token_logprobs"].size(), 4U);
  EXPECT_TRUE(choice["logprobs"]["token_logprobs"][0].is_null());
  EXPECT_TRUE(choice["logprobs"]["top_logprobs"][0].is_null());
  EXPECT_TRUE(choice["logprobs"]["top_logprobs"][1].contains("b"));
  EXPECT_EQ(running.engine.seen().at(0).params.prompt_logprobs, 1U);
}

TEST(Completions, EchoAloneMayScoreOnly) {
  const RunningServer running;
  const json choice =
      running.post("/v1/completions", {{"prompt", "abc"}, {"echo", true}, {"max_tokens", 0}}).json()["choices"][0];
  EXPECT_EQ(choice["text"], "abc");
  EXPECT_TRUE(choice["logprobs"].is_null());
  EXPECT_EQ(running.post("/v1/completions", {{"prompt", "abc"}, {"max_tokens", 0}}).status, 400U);
}

TEST(Completions, StopReasonNamesTheStop) {
  const RunningServer running(says("ab#c"));
  json choice = running.post("/v1/completions", {{"prompt", "x"}, {"stop", {"#", "?"}}}).json()["choices"][0];
  EXPECT_EQ(choice["text"], "ab");
  EXPECT_EQ(choice["stop_reason"], "#");
  choice = running.post("/v1/completions", {{"prompt", "x"}, {"stop_token_ids", {'b'}}}).json()["choices"][0];
  EXPECT_EQ(choice["stop_reason"], 'b');
  EXPECT_EQ(choice["finish_reason"], "stop");
}

TEST(Completions, StreamsInOrder) {
  const RunningServer running(says("Hi!"));
  const Reply reply = running.post("/v1/completions",
                                   {{"prompt", "x"}, {"stream", true}, {"stream_options", {{"include_usage", true}}}});
  EXPECT_EQ(reply.field("Content-Type"), "text/event-stream");
  const auto events = reply.events();
  ASSERT_EQ(events.size(), 6U) << reply.body;  // H, i, !, end of text, usage, [DONE]
  EXPECT_EQ(events.back(), "[DONE]");
  std::string text;
  const std::string id = json::parse(events[0])["id"];
  for (std::size_t i = 0; i < 4; ++i) {
    const json chunk = json::parse(events[i]);
    EXPECT_EQ(chunk["id"], id);
    EXPECT_EQ(chunk["object"], "text_completion");
    EXPECT_TRUE(chunk["usage"].is_null());
    text += chunk["choices"][0]["text"].get<std::string>();
    EXPECT_EQ(chunk["choices"][0]["finish_reason"], i == 3 ? json("stop") : json(nullptr));
  }
  EXPECT_EQ(text, "Hi!");
  const json usage = json::parse(events[4]);
  EXPECT_EQ(usage["choices"], json::array());
  EXPECT_EQ(usage["usage"]["completion_tokens"], 4);
}

TEST(Completions, AnEngineErrorIsTold) {
  FakeEngineConfig config;
  config.fails = true;
  const RunningServer running(config);
  const Reply whole = running.post("/v1/completions", {{"prompt", "x"}});
  EXPECT_EQ(whole.status, 500U);
  EXPECT_EQ(message_of(whole), "The fake engine was told to fail.");
  const auto events = running.post("/v1/completions", {{"prompt", "x"}, {"stream", true}}).events();
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(json::parse(events[1])["error"]["type"], "server_error");
}

TEST(Chat, WholeAnswerAndTemplate) {
  const RunningServer running(says("Hello"));
  const json messages =
      json::array({{{"role", "developer"}, {"content", "S"}},
                   {{"role", "user"},
                    {"content", json::array({{{"type", "text"}, {"text", "U"}}, {{"type", "text"}, {"text", "V"}}})}}});
  const Reply reply = running.post("/v1/chat/completions", {{"messages", messages}});
  ASSERT_EQ(reply.status, 200U) << reply.body;
  const json body = reply.json();
  EXPECT_EQ(body["object"], "chat.completion");
  EXPECT_EQ(body["choices"][0]["message"], (json{{"role", "assistant"}, {"content", "Hello"}, {"refusal", nullptr}}));
  EXPECT_EQ(body["choices"][0]["finish_reason"], "stop");
  const Request seen = running.engine.seen().at(0);
  EXPECT_EQ(*ByteTokenizer().decode(seen.prompt, false), "<s><system>S<user>U\nV<assistant>");
  EXPECT_EQ(seen.params.max_tokens, 4096 - seen.prompt.size()) << "as much as fits";
}

TEST(Chat, StreamsRoleTextEnd) {
  const RunningServer running(says("Hi"));
  const json request{{"messages", json::array({{{"role", "user"}, {"content", "x"}}})},
                     {"stream", true},
                     {"n", 2},
                     {"logprobs", true},
                     {"top_logprobs", 1}};
  const auto events = running.post("/v1/chat/completions", request).events();
  std::string text[2];
  int roles[2]{}, ends[2]{};
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    const json chunk = json::parse(events[i]);
    EXPECT_EQ(chunk["object"], "chat.completion.chunk");
    EXPECT_FALSE(chunk.contains("usage"));
    const json& choice = chunk["choices"][0];
    const auto index = choice["index"].get<std::size_t>();
    if (choice["delta"].contains("role")) {
      EXPECT_TRUE(text[index].empty());
      ++roles[index];
    } else if (choice["finish_reason"].is_null()) {
      EXPECT_EQ(ends[index], 0);
      text[index] += choice["delta"]["content"].get<std::string>();
      EXPECT_EQ(choice["logprobs"]["content"].size(), 1U);
    } else {
      EXPECT_EQ(choice["delta"], json::object());
      ++ends[index];
    }
  }
  EXPECT_EQ(events.back(), "[DONE]");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(text[i], "Hi");
    EXPECT_EQ(roles[i], 1);
    EXPECT_EQ(ends[i], 1);
  }
}

TEST(Chat, LogprobsHaveBytes) {
  const RunningServer running(says("\xC3\xA9"));
  const json request{{"messages", json::array({{{"role", "user"}, {"content", "x"}}})},
                     {"logprobs", true},
                     {"top_logprobs", 2},
                     {"max_completion_tokens", 1}};
  const json content = running.post("/v1/chat/completions", request).json()["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 1U);
  EXPECT_EQ(content[0]["bytes"], json{0xC3});
  EXPECT_EQ(content[0]["top_logprobs"][0]["logprob"], -0.25);
  EXPECT_EQ(content[0]["top_logprobs"][1]["logprob"], -9999.0);
}

TEST(Chat, WithoutATemplateSaysWhatToDo) {
  const RunningServer running;
  const Reply reply =
      running.post("/v1/chat/completions", {{"messages", json::array({{{"role", "user"}, {"content", "x"}}})}});
  EXPECT_EQ(reply.status, 400U);
  EXPECT_NE(message_of(reply).find("--chat-template FILE"), std::string::npos);
}

TEST(Chat, ContinuesTheLastMessage) {
  const RunningServer running(says("!"));
  const json messages =
      json::array({{{"role", "user"}, {"content", "x"}}, {{"role", "assistant"}, {"content", "Well, "}}});
  ASSERT_EQ(running.post("/v1/chat/completions", {{"messages", messages}, {"continue_final_message", true}}).status,
            200U);
  EXPECT_EQ(*ByteTokenizer().decode(running.engine.seen().at(0).prompt, false), "<s><user>x<assistant>Well,");
}

}  // namespace
}  // namespace octavo
