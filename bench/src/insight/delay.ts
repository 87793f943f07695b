import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices, expectStatus } from "@holdfast/testing/platform/services.ts";
import { startWebhookReceiver } from "@holdfast/testing/servers/webhook-receiver.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { ms, percentile, print } from "../support/figures.ts";

const intervalMs = 2_000;

/** Time from the moment that a rule's condition is true in the engine to the webhook's request at its receiver. */
export async function measureDelay(alerts: number): Promise<void> {
  const receiver = await startWebhookReceiver();
  const platform = await startPlatform({
    environment: { HOLDFAST_ALLOW_EGRESS: "127.0.0.0/8", HOLDFAST_SAMPLE_INTERVAL_MS: String(intervalMs) },
  });
  try {
    const { service, connection, password } = await createServices(platform).createRunning("watched");
    const config = { url: receiver.url };
    const channel = await platform.rest.post<{ id: string }>("/alerts/channels", {
      name: "c",
      type: "webhook",
      config,
    });
    const rule = { metric: "pg_connections", condition: "gt", threshold: 0 };
    const expected = { ...rule, notification_channel_id: expectStatus(channel, 201).json.id };
    const path = `/managed-services/${service.id}/alerts/rules`;
    expectStatus(await platform.rest.post(path, expected), 201);
    const states = () => receiver.received.map(({ body }) => (JSON.parse(body) as { state: string }).state);
    const took: number[] = [];
    for (let round = 1; round <= alerts; round += 1) {
      const client = await openPostgresql(platform, connection, { password });
      const startedAt = performance.now();
      await waitUntil("it is received", () => states().length === 2 * round - 1);
      took.push(performance.now() - startedAt);
      await client.end();
      await waitUntil("so is its end", () => states().length === 2 * round);
    }
    const wrong = states().some((state, index) => state !== (index % 2 === 0 ? "firing" : "resolved"));
    if (wrong) throw new Error(`received: ${states().join()}`);
    const figures = `${ms(percentile(took, 0.5))} / ${ms(percentile(took, 0.95))}`;
    print(`true to received, a sample each ${intervalMs} ms, p50 / p95`, figures, `<= ${intervalMs + 1_000} ms p95`);
  } finally {
    await platform.remove();
    await receiver.close();
  }
}
