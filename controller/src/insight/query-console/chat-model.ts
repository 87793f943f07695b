import { readFile } from "node:fs/promises";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import type { ModelSettings } from "./model-settings.ts";

/** A model that is asked by text and answers text. */
export interface ChatModel {
  /** Throws MODEL_UNREACHABLE, or the reason of the signal. */
  ask(prompt: ChatPrompt, signal: AbortSignal): Promise<string>;
}

export interface ChatPrompt {
  readonly system: string;
  readonly user: string;
}

const deadlineMs = 60_000;
const answerBytesMax = 256 << 10;
const answerTokensMax = 2_000;

interface Deps {
  /** For servers that operators configure. */
  readonly egress: Pick<EgressClient, "request">;
  readonly log: Log;
}

/** By OpenAI's chat completions; undefined unless operators have named URL, model and key. The key is read anew each time. */
export function createChatModel(
  { modelUrl, modelName, modelKeyFile }: ModelSettings,
  { egress, log }: Deps,
): ChatModel | undefined {
  if (modelUrl === "" || modelName === "" || modelKeyFile === "") return undefined;
  const url = `${modelUrl.replace(/\/+$/, "")}/chat/completions`;

  async function answerTo({ system, user }: ChatPrompt, signal: AbortSignal): Promise<string> {
    const key = (await readFile(modelKeyFile, "utf8")).trim();
    const messages = [
      { role: "system", content: system },
      { role: "user", content: user },
    ];
    const answer = await egress.request(url, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: modelName, messages, temperature: 0, max_tokens: answerTokensMax }),
      deadlineMs,
      bytesMax: answerBytesMax,
      signal,
    });
    if (answer.status !== 200) {
      await answer.drop();
      throw new Error(`status ${answer.status}`);
    }
    const content = contentOf(JSON.parse((await answer.bytes()).toString("utf8")));
    if (content === undefined) throw new Error("the answer is no chat completion");
    return content;
  }

  return {
    async ask(prompt, signal) {
      try {
        return await answerTo(prompt, signal);
      } catch (error) {
        signal.throwIfAborted();
        // What the server said may hold what it was asked.
        log.warn("the model did not answer", { error: error instanceof SyntaxError ? "no JSON" : String(error) });
        throw new HoldfastError("MODEL_UNREACHABLE", "The model of this installation gave no answer.", {
          cause: error,
        });
      }
    },
  };
}

function contentOf(answer: unknown): string | undefined {
  const { choices } = (answer ?? {}) as { choices?: unknown };
  const [first] = Array.isArray(choices) ? (choices as readonly ({ message?: { content?: unknown } } | null)[]) : [];
  const content = first?.message?.content;
  return typeof content === "string" ? content : undefined;
}
