// What a client does wrong, and what it is told.
#include "running_server.h"

namespace octavo {
namespace {

const json kMessages = json::array({{{"role", "user"}, {"content", "x"}}});

FakeEngineConfig with_template() {
  FakeEngineConfig config;
  config.chat_template = kChatTemplate;
  return config;
}

struct Wrong {
  const char* body;
  const char* field;
  std::vector<const char*> words;  // in the message
};

void expect_refused(const RunningServer& running, const char* path, const std::vector<Wrong>& cases) {
  for (const Wrong& wrong : cases) {
    const Reply reply = ask(running.port(), "POST", path, wrong.body);
    EXPECT_EQ(reply.status, 400U) << wrong.body;
    const json error = reply.json()["error"];
    EXPECT_EQ(error["type"], "invalid_request_error") << wrong.body;
    EXPECT_EQ(error["param"], *wrong.field == '\0' ? json(nullptr) : json(wrong.field)) << wrong.body;
    for (const char* word : wrong.words) {
      EXPECT_NE(error["message"].get<std::string>().find(word), std::string::npos)
          << error["message"] << " lacks " << word;
    }
  }
}

TEST(Errors, CompletionFields) {
  const RunningServer running;
  expect_refused(running, "/v1/completions",
                 {{"{", "", {"not valid JSON"}},
                  {"[]", "", {"JSON object"}},
                  {"\"x\"", "", {"JSON object"}},
                  {"{\"prompt\":\"\xFF\"}", "", {"not valid JSON", "UTF-8"}},
                  {R"({"prompt":1e999})", "", {"not valid JSON"}},
                  {R"({})", "prompt", {"missing"}},
                  {R"({"prompt":null})", "prompt", {"missing"}},
                  {R"({"prompt":{}})", "prompt", {"{}", "a list of strings"}},
                  {R"({"prompt":[]})", "prompt", {"[]"}},
                  {R"({"prompt":["a",1]})", "prompt", {"list of strings"}},
                  {R"({"prompt":[1,"a"]})", "prompt", {"\"a\"", "0 to 257"}},
                  {R"({"prompt":[[1],[]]})", "prompt", {"[]"}},
                  {R"({"prompt":[258]})", "prompt", {"258", "0 to 257"}},
                  {R"({"prompt":[-1]})", "prompt", {"-1"}},
                  {R"({"prompt":"x","model":7})", "model", {"7", "a string"}},
                  {R"({"prompt":"x","temperature":"hot"})", "temperature", {"\"hot\"", "from 0 to 100"}},
                  {R"({"prompt":"x","temperature":-0.1})", "temperature", {"-0.1", "from 0 to 100"}},
                  {R"({"prompt":"x","temperature":true})", "temperature", {"true"}},
                  {R"({"prompt":"x","top_p":0})", "top_p", {"above 0 up to 1"}},
                  {R"({"prompt":"x","top_p":1.01})", "top_p", {"1.01"}},
                  {R"({"prompt":"x","min_p":2})", "min_p", {"from 0 to 1"}},
                  {R"({"prompt":"x","top_k":1.5})", "top_k", {"1.5", "whole number"}},
                  {R"({"prompt":"x","n":0})", "n", {"from 1 to 128"}},
                  {R"({"prompt":"x","n":1000000})", "n", {"from 1 to 128"}},
                  {R"({"prompt":"x","max_tokens":-1})", "max_tokens", {"-1"}},
                  {R"({"prompt":"x","max_tokens":1e18})", "max_tokens", {"whole number"}},
                  {R"({"prompt":"x","max_tokens":"many"})", "max_tokens", {"\"many\""}},
                  {R"({"prompt":"x","max_tokens":2,"min_tokens":3})", "min_tokens", {"must not exceed max_tokens, 2"}},
                  {R"({"prompt":"x","presence_penalty":3})", "presence_penalty", {"from -2 to 2"}},
                  {R"({"prompt":"x","repetition_penalty":0})", "repetition_penalty", {"above 0"}},
                  {R"({"prompt":"x","logit_bias":{"999":1}})", "logit_bias", {"999", "0 to 257"}},
                  {R"({"prompt":"x","logit_bias":{"a":1}})", "logit_bias", {"\"a\""}},
                  {R"({"prompt":"x","logit_bias":{"65":101}})", "logit_bias", {"101", "from -100 to 100"}},
                  {R"({"prompt":"x","logit_bias":[1]})", "logit_bias", {"an object"}},
                  {R"({"prompt":"x","seed":1.5})", "seed", {"1.5"}},
                  {R"({"prompt":"x","stop":[""]})", "stop", {"none of them empty"}},
                  {R"({"prompt":"x","stop":[1]})", "stop", {"list of at most"}},
                  {R"({"prompt":"x","stop_token_ids":[999]})", "stop_token_ids", {"999"}},
                  {R"({"prompt":"x","logprobs":21})", "logprobs", {"from 0 to 20"}},
                  {R"({"prompt":"x","logprobs":true})", "logprobs", {"true"}},
                  {R"({"prompt":"x","stream":"yes"})", "stream", {"true or false"}},
                  {R"({"prompt":"x","stream_options":{"include_usage":1}})", "stream_options", {"include_usage"}},
                  {R"({"prompt":"x","best_of":3})", "best_of", {"not supported"}},
                  {R"({"prompt":"x","suffix":"y"})", "suffix", {"not supported"}},
                  {R"({"prompt":"x","guided_json":{"type":"object"}})", "guided_json", {"not supported"}},
                  {R"({"prompt":"x","response_format":{"type":"json_object"}})", "response_format", {"json_object"}},
                  {R"({"prompt":"x","cache_salt":5})", "cache_salt", {"5", "a string of 1 to 256 bytes"}},
                  {R"({"prompt":"x","cache_salt":""})", "cache_salt", {"\"\""}},
                  {R"({"prompt":"x","deadline_ms":0})", "deadline_ms", {"0", "from 1 to 1000000000"}},
                  {R"({"prompt":"x","deadline_ms":1.5})", "deadline_ms", {"1.5", "whole number"}},
                  {R"({"prompt":"x","deadline_ms":"soon"})", "deadline_ms", {"soon"}},
                  {R"({"prompt":[[]]})", "prompt", {"[[]]"}}});
  EXPECT_TRUE(running.engine.seen().empty());
}

TEST(Errors, ChatFields) {
  const RunningServer running(with_template());
  expect_refused(
      running, "/v1/chat/completions",
      {{R"({})", "messages", {"missing"}},
       {R"({"messages":"hi"})", "messages", {"\"hi\""}},
       {R"({"messages":[]})", "messages", {"at least one"}},
       {R"({"messages":["hi"]})", "messages", {"messages[0]", "an object"}},
       {R"({"messages":[{"content":"x"}]})", "messages", {"role"}},
       {R"({"messages":[{"role":"pope","content":"x"}]})", "messages", {"messages[0]", "\"pope\"", "\"tool\""}},
       {R"({"messages":[{"role":5,"content":"x"}]})", "messages", {"messages[0]", "5"}},
       {R"({"messages":[{"role":"user"}]})", "messages", {"content"}},
       {R"({"messages":[{"role":"user","content":5}]})", "messages", {"5"}},
       {R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]})",
        "messages",
        {"image_url", "not supported"}},
       {R"({"messages":[{"role":"user","content":[{"type":"text"}]}]})", "messages", {"part"}},
       {R"({"messages":[{"role":"user","content":"x"}],"max_tokens":0})", "max_tokens", {"at least 1"}},
       {R"({"messages":[{"role":"user","content":"x"}],"top_logprobs":2})", "top_logprobs", {"logprobs"}},
       {R"({"messages":[{"role":"user","content":"x"}],"tools":{}})", "tools", {"a list"}},
       {R"({"messages":[{"role":"user","content":"x"}],"tools":[{},5]})", "tools", {"tools[1] is 5"}},
       {R"({"messages":[{"role":"user","content":"x"}],"reasoning_effort":5})", "reasoning_effort", {"5", "a string"}},
       {R"({"messages":[{"role":"user","content":"x"}],"tools":[{}],"tool_choice":"required"})",
        "tool_choice",
        {"required", "not supported"}},
       {R"({"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema"}})",
        "response_format",
        {"json_schema"}},
       {R"({"messages":[{"role":"user","content":"x"}],"chat_template_kwargs":1})",
        "chat_template_kwargs",
        {"an object"}}});
}

TEST(Errors, ContextOverflowHasTheNumbers) {
  const RunningServer running;
  const Reply both = running.post("/v1/completions", {{"prompt", std::string(4000, 'x')}, {"max_tokens", 500}});
  EXPECT_EQ(both.status, 400U);
  EXPECT_EQ(
      message_of(both),
      "This model's maximum context length is 4096 tokens. However, you requested 4501 tokens (4001 in the prompt, "
      "500 in the completion). Please reduce the length of the prompt or max_tokens.");
  EXPECT_EQ(code_of(both), "context_length_exceeded");
  EXPECT_EQ(both.json()["error"]["n_prompt_tokens"], 4001);
  EXPECT_EQ(both.json()["error"]["n_ctx"], 4096);
  const Reply prompt = running.post("/v1/completions", {{"prompt", std::string(100000, 'x')}});
  EXPECT_EQ(prompt.status, 400U);
  EXPECT_EQ(prompt.json()["error"]["n_prompt_tokens"], 100001);
  EXPECT_NE(message_of(prompt).find("maximum context length is 4096"), std::string::npos);
  const Reply unread = running.post("/v1/completions", {{"prompt", std::string(6'000'000, 'x')}});
  EXPECT_EQ(unread.status, 400U);
  EXPECT_NE(message_of(unread).find("6000000 bytes, which are at least 5859 tokens"), std::string::npos);
}

TEST(Errors, UnknownModel) {
  ServerConfig config;
  config.served_models = {"org/name", "other"};
  const RunningServer running({}, config);
  for (const char* known : {"org/name", "other", "fake", ""}) {
    EXPECT_EQ(running.post("/v1/completions", {{"prompt", "x"}, {"model", known}}).status, 200U) << known;
  }
  const Reply reply = running.post("/v1/completions", {{"prompt", "x"}, {"model", "gpt-4"}});
  EXPECT_EQ(reply.status, 404U);
  EXPECT_EQ(code_of(reply), "model_not_found");
  EXPECT_NE(message_of(reply).find("org/name"), std::string::npos);
  EXPECT_EQ(running.get("/v1/models/org%2Fname").json()["id"], "org/name");
  EXPECT_EQ(running.get("/v1/models/org/name").json()["id"], "org/name");
  EXPECT_EQ(running.get("/v1/models/none").status, 404U);
}

TEST(Errors, RoutesAndMethods) {
  const RunningServer running;
  const Reply unknown = running.get("/v1/nothing");
  EXPECT_EQ(unknown.status, 404U);
  EXPECT_EQ(code_of(unknown), "not_found");
  const Reply wrong = running.get("/v1/completions");
  EXPECT_EQ(wrong.status, 405U);
  EXPECT_EQ(wrong.field("Allow"), "POST");
  EXPECT_EQ(ask(running.port(), "DELETE", "/health").status, 405U);
  EXPECT_EQ(ask(running.port(), "HEAD", "/health").status, 200U);
}

TEST(Errors, QueueFullIs429) {
  FakeEngineConfig config;
  config.max_queued = 0;
  const RunningServer running(config);
  const Reply reply = running.post("/v1/completions", {{"prompt", "x"}});
  EXPECT_EQ(reply.status, 429U);
  EXPECT_EQ(reply.field("Retry-After"), "1");
}

TEST(Errors, APassedDeadlineIs504) {
  FakeEngineConfig config;
  config.token_delay = std::chrono::milliseconds(20);
  const RunningServer running(config);
  json body{{"prompt", "x"}, {"max_tokens", 1000}, {"deadline_ms", 50}};
  const Reply whole = running.post("/v1/completions", body);
  EXPECT_EQ(whole.status, 504U);
  EXPECT_EQ(code_of(whole), "deadline_exceeded");
  EXPECT_EQ(whole.json()["error"]["param"], "deadline_ms");
  body["stream"] = true;
  const Reply streamed = running.post("/v1/completions", body);
  EXPECT_EQ(streamed.status, 200U) << "the first tokens were on their way already";
  EXPECT_NE(streamed.body.find("deadline_exceeded"), std::string::npos) << streamed.body;
  EXPECT_EQ(streamed.body.find("\"finish_reason\":\"length\""), std::string::npos);
  EXPECT_EQ(running.engine.stats().finished_deadline, 2U);
}

TEST(Errors, HostileJson) {
  const RunningServer running;
  const std::string deep(1000000, '[');
  EXPECT_EQ(ask(running.port(), "POST", "/v1/completions", deep).status, 400U);
  std::string keys = "{\"prompt\":\"x\"";
  for (int i = 0; i < 100000; ++i) keys += ",\"k" + std::to_string(i) + "\":0";
  EXPECT_EQ(ask(running.port(), "POST", "/v1/completions", keys + "}").status, 400U);
  EXPECT_EQ(running.get("/health").status, 200U);
}

TEST(Errors, ApiKeys) {
  ServerConfig config;
  config.api_keys = {"first", "second"};
  const RunningServer running({}, config);
  const json body{{"prompt", "x"}};
  for (const Headers& headers : {Headers{}, Headers{{"Authorization", "Bearer wrong"}},
                                 Headers{{"Authorization", "first"}}, Headers{{"x-api-key", "firs"}}}) {
    const Reply reply = running.post("/v1/completions", body, headers);
    EXPECT_EQ(reply.status, 401U);
    EXPECT_EQ(code_of(reply), "invalid_api_key");
  }
  EXPECT_EQ(running.post("/v1/completions", body, {{"Authorization", "Bearer first"}}).status, 200U);
  EXPECT_EQ(running.post("/v1/completions", body, {{"x-api-key", "second"}}).status, 200U);
  EXPECT_EQ(running.get("/metrics").status, 401U);
  EXPECT_EQ(running.get("/nothing").status, 401U);
  for (const char* open : {"/health", "/ready", "/ping"}) EXPECT_EQ(running.get(open).status, 200U) << open;
}

TEST(Errors, ListeningBeyondLoopbackNeedsAKey) {
  FakeEngine engine({});
  ServerConfig config;
  config.host = "0.0.0.0";
  config.port = 0;
  auto refused = Server::listen(engine, config);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("--api-key"), std::string::npos);
  config.api_keys = {"k"};
  EXPECT_TRUE(Server::listen(engine, config).ok());
  config.api_keys.clear();
  config.no_auth = true;
  EXPECT_TRUE(Server::listen(engine, config).ok());
  config.host = "no such host";
  EXPECT_FALSE(Server::listen(engine, config).ok());
}

TEST(Errors, PortInUse) {
  const RunningServer running;
  FakeEngine engine({});
  ServerConfig config;
  config.port = running.port();
  auto refused = Server::listen(engine, config);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find(std::to_string(running.port())), std::string::npos);
  EXPECT_NE(refused.error().message.find("--port"), std::string::npos);
}

}  // namespace
}  // namespace octavo
