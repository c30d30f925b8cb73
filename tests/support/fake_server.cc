// The HTTP server over the fake engine, to try clients without a model: fake_server PORT
#include <cstdio>
#include <cstdlib>

#include "server/server.h"
#include "support/fake_engine.h"

int main(int argc, char** argv) {
  octavo::FakeEngineConfig fake;
  fake.chat_template =
      "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}";
  fake.token_delay = std::chrono::milliseconds(2);
  octavo::FakeEngine engine(std::move(fake));
  octavo::ServerConfig config;
  config.port = static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 0);
  auto server = octavo::Server::listen(engine, config);
  if (!server) {
    std::fprintf(stderr, "%s\n", server.error().message.c_str());
    return 1;
  }
  std::printf("http://127.0.0.1:%u\n", (*server)->port());
  std::fflush(stdout);
  (*server)->run();
}
