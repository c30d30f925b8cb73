#include "cli/sampling.h"

#include <limits>

#include "cli/validators.h"

namespace octavo {

void add_sampling_options(CLI::App& app, SamplingParams& params) {
  const char* group = "Sampling";
  constexpr std::uint32_t kAny = std::numeric_limits<std::uint32_t>::max();
  const auto number = [&](const char* name, float& target, const char* about) {
    app.add_option(name, target, about)->check(finite())->capture_default_str()->group(group);
  };
  app.add_option("--max-tokens", params.max_tokens, "most tokens to generate")
      ->check(whole_number(0, kAny))
      ->capture_default_str()
      ->group(group);
  number("--temperature", params.temperature, "0 is greedy");
  number("--top-p", params.top_p, "keep the smallest set of tokens with this mass");
  app.add_option("--top-k", params.top_k, "keep this many tokens; 0: all")->capture_default_str()->group(group);
  number("--min-p", params.min_p, "drop tokens below this share of the likeliest");
  number("--repetition-penalty", params.repetition_penalty, "over prompt and output; 1: none");
  number("--presence-penalty", params.presence_penalty, "over the output; 0: none");
  number("--frequency-penalty", params.frequency_penalty, "over the output; 0: none");
  app.add_option("--seed", params.seed, "of the random draws (default: a new one each time)")
      ->check(whole_number())
      ->group(group);
  app.add_option("--stop", params.stop, "end before this text; may be given several times")
      ->allow_extra_args(false)
      ->group(group);
  app.add_flag("--ignore-eos", params.ignore_eos, "go on past end-of-generation tokens")->group(group);
}

void read_sampling(Fields& fields, SamplingParams& params) {
  fields.read("n", params.n);
  fields.read("max_tokens", params.max_tokens);
  fields.read("min_tokens", params.min_tokens);
  fields.read("temperature", params.temperature);
  fields.read("top_p", params.top_p);
  fields.read("top_k", params.top_k);
  fields.read("min_p", params.min_p);
  fields.read("repetition_penalty", params.repetition_penalty);
  fields.read("presence_penalty", params.presence_penalty);
  fields.read("frequency_penalty", params.frequency_penalty);
  fields.read("seed", params.seed);
  fields.read("stop", params.stop);
  fields.read("stop_token_ids", params.stop_token_ids);
  fields.read("ignore_eos", params.ignore_eos);
  fields.read("skip_special_tokens", params.skip_special_tokens);
  fields.read("logprobs", params.logprobs);
  fields.read("prompt_logprobs", params.prompt_logprobs);
}

}  // namespace octavo
