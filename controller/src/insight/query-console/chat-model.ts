import { readFile } from "node:fs/promises";
import { text, type ValuesOf } from "@holdfast/common/config.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";

/** Settings of the model that translates questions into SQL. */
export const modelSettings = {
  modelUrl: text(
    "HOLDFAST_MODEL_URL",
    "Base URL of an OpenAI-compatible API, without /chat/completions; empty: questions are not translated",
    "",
  ),
  modelName: text("HOLDFAST_MODEL_NAME", "Name of the model at that URL", ""),
  modelKeyFile: text("HOLDFAST_MODEL_KEY_FILE", "File with the API key, which is sent as a bearer token", ""),
} as const;

export type ModelSettings = ValuesOf<typeof modelSettings>;

/** A language model: prompt in, text out. */
export interface ChatModel {
  /** The model's text. Throws MODEL_UNREACHABLE, or the reason of the signal. */
  complete(prompt: ChatPrompt, signal: AbortSignal): Promise<string>;
}

export interface ChatPrompt {
  readonly system: string;
  readonly user: string;
}

const deadlineMs = 60_000;
const responseBytesMax = 256 << 10;
const completionTokensMax = 2_000;

interface Deps {
  /** The client for servers that operators configure. */
  readonly egress: Pick<EgressClient, "request">;
  readonly log: Log;
}

/**
 * Calls OpenAI's chat completions API. Undefined unless operators have set URL, model and key. The key file is read for
 * each call.
 */
export function createChatModel(
  { modelUrl, modelName, modelKeyFile }: ModelSettings,
  { egress, log }: Deps,
): ChatModel | undefined {
  if (modelUrl === "" || modelName === "" || modelKeyFile === "") return undefined;
  const url = `${modelUrl.replace(/\/+$/, "")}/chat/completions`;

  async function requestCompletion({ system, user }: ChatPrompt, signal: AbortSignal): Promise<string> {
    const key = (await readFile(modelKeyFile, "utf8")).trim();
    const messages = [
      { role: "system", content: system },
      { role: "user", content: user },
    ];
    const response = await egress.request(url, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: modelName, messages, temperature: 0, max_tokens: completionTokensMax }),
      deadlineMs,
      maxBytes: responseBytesMax,
      signal,
    });
    if (response.status !== 200) {
      await response.drop();
      throw new Error(`status ${response.status}`);
    }
    const content = contentOf(JSON.parse((await response.bytes()).toString("utf8")));
    if (content === undefined) throw new Error("the response is not a chat completion");
    return content;
  }

  return {
    async complete(prompt, signal) {
      try {
        return await requestCompletion(prompt, signal);
      } catch (error) {
        signal.throwIfAborted();
        // The server's error text may contain the prompt, so it is not logged.
        log.warn("model call failed", { error: error instanceof SyntaxError ? "no JSON" : String(error) });
        throw new HoldfastError(
          "MODEL_UNREACHABLE",
          "The model of this installation did not respond. Try again later.",
          {
            cause: error,
          },
        );
      }
    },
  };
}

function contentOf(response: unknown): string | undefined {
  const { choices } = (response ?? {}) as { choices?: unknown };
  const [first] = Array.isArray(choices) ? (choices as readonly ({ message?: { content?: unknown } } | null)[]) : [];
  const content = first?.message?.content;
  return typeof content === "string" ? content : undefined;
}
