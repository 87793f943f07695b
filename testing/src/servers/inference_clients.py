"""Calls the inference proxy as applications in Python do, and prints the results as one line of JSON."""

import json
import os

import httpx
import litellm
import openai

BASE, KEY, LIMITED, MODEL = (os.environ[name] for name in ("BASE_URL", "KEY", "POOR_KEY", "MODEL"))
MESSAGES = [{"role": "user", "content": "Say hello."}]
sent = []


def client(key):
    counted = httpx.Client(event_hooks={"request": [lambda request: sent.append(request.url.path)]})
    return openai.OpenAI(base_url=BASE, api_key=key, http_client=counted)


def error_of(call):
    try:
        call()
    except Exception as error:
        return [type(error).__name__, getattr(error, "status_code", None), getattr(error, "code", None)]
    return None


def chat(key, model=MODEL, **more):
    return client(key).chat.completions.create(model=model, messages=MESSAGES, max_tokens=8, **more)


def streamed(chunks):
    text, usages = "", []
    for chunk in chunks:
        for choice in chunk.choices:
            text += choice.delta.content or ""
        usage = getattr(chunk, "usage", None)
        if usage:
            usages.append([usage.prompt_tokens, usage.completion_tokens])
    return {"text": text, "usages": usages}


def by_litellm(**more):
    return litellm.completion(
        model="openai/" + MODEL, api_base=BASE, api_key=KEY, messages=MESSAGES, max_tokens=8, **more
    )


def refused_by_limit():
    before = len(sent)
    error = error_of(lambda: chat(LIMITED))
    return {"error": error, "requests": len(sent) - before}


completion = chat(KEY)
embedded = client(KEY).embeddings.create(model=MODEL, input=["a", "b"], encoding_format="float")
from_litellm = by_litellm()
print(
    json.dumps(
        {
            "chat": {"text": completion.choices[0].message.content, "usage": [completion.usage.prompt_tokens, completion.usage.completion_tokens]},
            "stream": streamed(chat(KEY, stream=True)),
            "embeddings": len(embedded.data),
            "litellm": {"text": from_litellm.choices[0].message.content, "usage": [from_litellm.usage.prompt_tokens, from_litellm.usage.completion_tokens]},
            "litellm_stream": streamed(by_litellm(stream=True)),
            "unknown_key": error_of(lambda: chat(KEY[:-4] + "AAAA")),
            "no_prefix": error_of(lambda: chat(KEY, model="large")),
            "no_provider": error_of(lambda: chat(KEY, model="provider_a/m")),
            "over_the_ceiling": refused_by_limit(),
            "requests": len(sent),
        }
    )
)
