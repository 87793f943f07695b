import { create } from "@bufbuild/protobuf";
import { CreateWebhookRequestSchema, DeleteWebhookRequestSchema } from "@holdfast/proto/holdfast/v1/webhook_pb.ts";
import { startTestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { startTestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import {
  openWebhookPlatform,
  type WebhookPlatform,
  type WebhookServers,
} from "@holdfast/testing/servers/webhook-platform.ts";
import { uuidv7 } from "uuidv7";
import { loadCore, type PeerProcess, startPeer } from "./peer-process.ts";

/** Servers with fsync, a receiver, and the API's side of webhooks without delivery. */
export interface WebhookBench {
  readonly servers: WebhookServers;
  readonly sink: PeerProcess;
  readonly sinkUrl: string;
  readonly platform: WebhookPlatform;
  /** Creates an organization with endpoints at these paths of the receiver. */
  organization(paths: readonly string[]): Promise<string>;
  /** Starts a process that delivers. */
  startSender(): Promise<PeerProcess>;
  /** Numbers of recorded attempts and of waiting deliveries. */
  counts(): Promise<{ attempts: number; waiting: number }>;
  /** Removes events, deliveries, attempts and endpoints. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

export async function openWebhookBench(): Promise<WebhookBench> {
  const [etcd, postgresql] = await Promise.all([
    startTestEtcd(["--unsafe-no-fsync=false"]),
    startTestPostgresql(["fsync=on", "full_page_writes=on", "synchronous_commit=on", "shared_buffers=256MB"]),
  ]);
  const servers = { etcdUrl: etcd.url, historyUrl: postgresql.url };
  const sink = await startPeer("webhook-sink", {}, loadCore);
  const sinkUrl = String(sink.ready["url"]);
  const platform = await openWebhookPlatform(servers);
  const { database } = platform.history;
  return {
    servers,
    sink,
    sinkUrl,
    platform,
    async organization(paths) {
      const id = uuidv7();
      for (const path of paths) {
        const request = create(CreateWebhookRequestSchema, { url: `${sinkUrl}${path}` });
        await platform.api.createWebhook(request, platform.call(id));
      }
      return id;
    },
    startSender: () => startPeer("webhook-sender", servers),
    async counts() {
      const [row] = await database.query<{ attempts: number; waiting: number }>(
        "select (select count(*) from webhook_attempt)::int as attempts, (select count(*) from webhook_delivery)::int as waiting",
      );
      return row ?? { attempts: 0, waiting: 0 };
    },
    async clear() {
      for (const { object } of Array.from(platform.webhooks.values())) {
        const { id, organizationId } = object.metadata;
        await platform.api.deleteWebhook(create(DeleteWebhookRequestSchema, { id }), platform.call(organizationId));
      }
      await database.query("truncate event, webhook_delivery, webhook_attempt, webhook_repeat, webhook_health");
      await sink.query({ query: "clear" });
    },
    async close() {
      await platform.close();
      await sink.end();
      await Promise.all([etcd.stop(), postgresql.stop()]);
    },
  };
}

/** Resolves when the condition is true; checks every 50 ms. */
export async function untilTrue(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50));
}
