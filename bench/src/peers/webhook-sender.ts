import {
  type Delivering,
  openWebhookPlatform,
  type WebhookServers,
} from "@holdfast/testing/servers/webhook-platform.ts";
import { answerQueries } from "../support/peer-queries.ts";

// Our sender: a controller's webhook delivery, in a process of its own.
const servers = JSON.parse(process.argv[2] ?? "") as WebhookServers;
const platform = await openWebhookPlatform(servers);
let delivering: Delivering | undefined;
answerQueries({
  async go() {
    delivering = platform.deliver();
  },
  async stop() {
    await delivering?.stop();
  },
});
process.send?.({});
