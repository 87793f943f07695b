import { type Received, startWebhookReceiver } from "./webhook-receiver.ts";

/** A server with OpenAI's API of chat completions and scripted content. */
export interface ScriptedModel {
  readonly url: string;
  readonly requests: readonly Received[];
  /** Sets its content from now on. */
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
    requests: server.received,
    script(content, status = 200) {
      next = { content, status };
    },
    close: server.close,
  };
}
