import {
  type Delivering,
  openWebhookPlatform,
  type WebhookServers,
} from "@holdfast/testing/servers/webhook-platform.ts";
import { answerQueries } from "../support/peer-queries.ts";

// Holdfast's sender: a controller's webhook delivery, in a separate process.
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
