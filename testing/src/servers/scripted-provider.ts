import { createServer } from "node:https";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createTestCertificate } from "../controller/test-certificate.ts";

/** A call as the provider received it. */
export interface ProviderCall {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Charges of the provider for a model by its own count. */
export interface Charged {
  requests: number;
  promptTokens: number;
  completionTokens: number;
}

/** A provider of models over real TLS whose behavior follows from the name of a model, with its own ledger. */
export interface ScriptedProvider {
  /** Base URL for organizations' configuration. */
  readonly url: string;
  /** PEM of its authority. */
  readonly authority: string;
  readonly calls: ProviderCall[];
  /** Number of connections so far. */
  readonly connections: number;
  /** Bytes of responses of the model `flood`, which continue as long as a client reads them. */
  readonly flooded: number;
  /** Charged usage by model, only of responses that were sent completely. */
  readonly ledger: ReadonlyMap<string, Charged>;
  /** Calls that wait for `release`, of the model `held`. */
  readonly waiting: number;
  release(): void;
  close(): Promise<void>;
}

const promptTokens = 11;
const completionTokens = 3;
const usage = {
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens,
};

const chunk = (more: object) => ({ id: "c1", object: "chat.completion.chunk", created: 1, model: "m", ...more });
const delta = (content: string) => chunk({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });
const eventOf = (data: object) => `data: ${JSON.stringify(data)}\n\n`;

/** The events of a complete stream; two of its characters have several bytes. */
const completeStream = [
  eventOf(delta("Grüß")),
  ": a comment\n\n",
  eventOf(delta(" dich 🙂")),
  eventOf(chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })),
  eventOf(chunk({ choices: [], usage })),
  "data: [DONE]\n\n",
];

/** Bytes of the stream of model `cut-N`. */
export const streamBytes = Buffer.from(completeStream.join(""));
/** Number of bytes after which the first output is sent: its last line feed ends the event. */
export const outputSentAt = Buffer.byteLength(completeStream[0] ?? "");
/** Number of bytes after which the choice has its finish_reason. */
export const finishSentAt = Buffer.byteLength(completeStream.slice(0, 4).join(""));
/** Number of bytes after which the usage is sent. */
export const usageSentAt = Buffer.byteLength(completeStream.slice(0, 5).join(""));

/** Responses of models by name, in place of the built-in ones. */
export type ScriptedResponses = ReadonlyMap<string, (response: ServerResponse) => void>;

export async function startScriptedProvider(responses: ScriptedResponses = new Map()): Promise<ScriptedProvider> {
  const { cert, key } = await createTestCertificate();
  const calls: ProviderCall[] = [];
  const ledger = new Map<string, Charged>();
  let waiting: (() => void)[] = [];
  let connections = 0;
  let flooded = 0;

  function charge(model: string, tokens: { prompt_tokens: number; completion_tokens: number } = usage): void {
    const before = ledger.get(model) ?? { requests: 0, promptTokens: 0, completionTokens: 0 };
    ledger.set(model, {
      requests: before.requests + 1,
      promptTokens: before.promptTokens + tokens.prompt_tokens,
      completionTokens: before.completionTokens + tokens.completion_tokens,
    });
  }

  function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
  }

  const completionWith = (more: object) => ({
    id: "c1",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, message: { role: "assistant", content: "Hello there" }, finish_reason: "stop" }],
    ...more,
  });

  function stream(response: ServerResponse, model: string): void {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const cutAt = /^cut-(\d+)$/.exec(model)?.[1];
    if (cutAt !== undefined) {
      if (Number(cutAt) >= usageSentAt) charge(model);
      // The written bytes go out before the connection breaks.
      response.write(streamBytes.subarray(0, Number(cutAt)), () => response.socket?.destroySoon());
      return;
    }
    if (model === "bytewise") {
      charge(model);
      let at = 0;
      const next = () => {
        if (at === streamBytes.length) return void response.end();
        response.write(streamBytes.subarray(at, (at += 1)));
        setImmediate(next);
      };
      return next();
    }
    if (model === "flood") {
      const bytes = Buffer.from(eventOf(delta("x".repeat(16_384))));
      const more = () => {
        while (!response.destroyed) {
          flooded += bytes.length;
          if (!response.write(bytes)) return void response.once("drain", more);
        }
      };
      return more();
    }
    if (model === "held") {
      response.write(completeStream[0]);
      return void waiting.push(() => {
        charge(model);
        response.end(completeStream.slice(1).join(""));
      });
    }
    if (model === "endless") {
      const more = () => {
        while (!response.destroyed && response.write(`data: ${"x".repeat(8_192)}`)) continue;
        if (!response.destroyed) response.once("drain", more);
      };
      return more();
    }
    const ends: Readonly<Record<string, readonly string[]>> = {
      none: [completeStream[0] ?? "", "data: [DONE]\n\n"],
      junk: [completeStream[0] ?? "", "data: {not json\n\n"],
      twice: [
        completeStream[0] ?? "",
        eventOf(chunk({ choices: [], usage: { ...usage, completion_tokens: 1 } })),
        ...completeStream.slice(4),
      ],
      inline: [eventOf({ ...delta("a"), usage: { ...usage, completion_tokens: 1 } }), ...completeStream.slice(1)],
      failing: [completeStream[0] ?? "", eventOf({ error: { message: "overheated" } })],
    };
    if (ends[model] === undefined || model === "twice" || model === "inline") charge(model);
    response.end((ends[model] ?? completeStream).join(""));
  }

  function plain(response: ServerResponse, model: string): void {
    // "uses-16-50" reports that usage.
    const [, prompt, completion] = /^uses-(\d+)-(\d+)$/.exec(model) ?? [];
    if (prompt !== undefined) {
      const reported = { prompt_tokens: Number(prompt), completion_tokens: Number(completion) };
      charge(model, reported);
      return json(response, 200, completionWith({ usage: reported }));
    }
    const odd: Readonly<Record<string, unknown>> = {
      zero: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
      none: undefined,
      negative: { ...usage, completion_tokens: -3 },
      fraction: { ...usage, completion_tokens: 1.5 },
      huge: { ...usage, prompt_tokens: 9e9 },
    };
    switch (model) {
      case "unauthorized":
        return json(response, 401, { error: { message: `the key is wrong` } });
      case "busy":
        return json(response, 429, { error: { message: "slow down" } }, { "retry-after": "7" });
      case "broken":
        return json(response, 500, { error: { message: "inside" } });
      case "missing":
        return json(response, 404, { error: { message: "no such model here" } });
      case "moved":
        return json(response, 307, {}, { location: "https://127.0.0.1:1/elsewhere" });
      case "junk":
        return void response.writeHead(200, { "content-type": "application/json" }).end("<html>");
      case "held":
        charge(model);
        return void waiting.push(() => json(response, 200, completionWith({ usage })));
      default: {
        const reported = Object.hasOwn(odd, model) ? odd[model] : usage;
        // The total of these is right.
        if (["negative", "fraction", "huge"].includes(model)) charge(model);
        else if (!Object.hasOwn(odd, model) || model === "zero") charge(model, reported as typeof usage);
        json(response, 200, completionWith({ usage: reported }));
      }
    }
  }

  const server = createServer({ key, cert }, (request, response) => {
    const chunks: Buffer[] = [];
    response.on("error", () => undefined);
    request.on("data", (each: Buffer) => void chunks.push(each));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString();
      const body = JSON.parse(text) as Record<string, unknown>;
      calls.push({ path: request.url ?? "", headers: request.headers, text, body });
      const model = String(body["model"]);
      const respond = responses.get(model);
      if (respond !== undefined) return respond(response);
      if (request.url === "/v1/embeddings") {
        charge(model, { prompt_tokens: promptTokens, completion_tokens: 0 });
        const data = [{ object: "embedding", index: 0, embedding: [0.25, -0.5] }];
        const reported = { prompt_tokens: promptTokens, total_tokens: promptTokens };
        return json(response, 200, { object: "list", data, model, usage: reported });
      }
      if (body["stream"] === true) stream(response, model);
      else plain(response, model);
    });
  });
  server.on("tlsClientError", () => undefined);
  server.on("connection", () => (connections += 1));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://127.0.0.1:${port}/v1`,
    authority: cert,
    calls,
    get connections() {
      return connections;
    },
    get flooded() {
      return flooded;
    },
    ledger,
    get waiting() {
      return waiting.length;
    },
    release() {
      for (const go of waiting) go();
      waiting = [];
    },
    close() {
      server.closeAllConnections();
      return new Promise((closed) => server.close(() => closed()));
    },
  };
}
