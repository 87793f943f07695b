import {
  type Delivering,
  openWebhookPlatform,
  type WebhookServers,
} from "@holdfast/test/support/servers/webhook-platform.ts";
import { answerQuestions } from "../support/questions.ts";

// Ours: what a controller has for webhooks, in a process of its own.
const servers = JSON.parse(process.argv[2] ?? "") as WebhookServers;
const platform = await openWebhookPlatform(servers);
let delivering: Delivering | undefined;
answerQuestions({
  async go() {
    delivering = platform.deliver();
  },
  async stop() {
    await delivering?.stop();
  },
});
process.send?.({});
