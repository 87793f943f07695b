import { type Received, startWebhookReceiver } from "./webhook-receiver.ts";

/** A server that speaks as OpenAI's chat completions do, and says what it is told to. */
export interface ScriptedModel {
  readonly url: string;
  readonly asked: readonly Received[];
  /** What it answers from now on. */
  script(content: string, status?: number): void;
  close(): Promise<void>;
}

export async function startScriptedModel(): Promise<ScriptedModel> {
  let next = { content: "", status: 200 };
  const server = await startWebhookReceiver((response, { path }) => {
    const { content, status } = path === "/v1/chat/completions" ? next : { content: "no such path", status: 404 };
    const message = { role: "assistant", content };
    const choices = [{ index: 0, finish_reason: "stop", message }];
    response.writeHead(status, { "content-type": "application/json" });
    response.end(status === 200 ? JSON.stringify({ object: "chat.completion", choices }) : content);
  });
  return {
    url: server.url,
    asked: server.received,
    script(content, status = 200) {
      next = { content, status };
    },
    close: server.close,
  };
}
