import { create } from "@bufbuild/protobuf";
import {
  CreateWebhookRequestSchema,
  type Delivery,
  ListDeliveriesRequestSchema,
  RotateSecretRequestSchema,
} from "@holdfast/proto/holdfast/v1/webhook_pb.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type TestImage, testImage } from "@holdfast/testing/engines/test-image.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import {
  type Delivering,
  startWebhookPlatform,
  type WebhookPlatform,
} from "@holdfast/testing/servers/webhook-platform.ts";
import { startWebhookReceiver, type WebhookReceiver } from "@holdfast/testing/servers/webhook-receiver.ts";
import { type ReferenceServer, startDebianWebhook, startNginx } from "@holdfast/testing/servers/webhook-servers.ts";

// Third-party programs that receive the platform's deliveries.
describe("Debian's receivers", () => {
  let platform: WebhookPlatform;
  let delivering: Delivering;
  let image: TestImage | string;

  beforeAll(async () => {
    image = await testImage("webhooks");
    platform = await startWebhookPlatform();
    delivering = platform.deliver();
    // The first run builds an image, which takes minutes on a busy machine.
  }, 600_000);
  afterAll(async () => {
    await delivering?.stop();
    await platform?.close();
  });

  const endpoint = async (organizationId: string, url: string) => {
    const created = await platform.api.createWebhook(
      create(CreateWebhookRequestSchema, { url }),
      platform.call(organizationId),
    );
    return { id: created.id ?? "", secret: created.secret ?? "" };
  };

  /** The first attempt at the endpoint, once it has ended. */
  const firstAttempt = (organizationId: string, id: string) =>
    waitUntil("the first attempt has ended", async () => {
      const request = create(ListDeliveriesRequestSchema, { id });
      const { deliveries = [] } = await platform.api.listDeliveries(request, platform.call(organizationId));
      return (deliveries as Delivery[]).find(({ attempt }) => attempt === 1);
    });

  test("webhook accepts only deliveries that are signed with its secret", async (context) => {
    if (typeof image === "string") return context.skip(image);
    const organizationId = "signed";
    const [port = 0] = await freePorts(1);
    const right = await endpoint(organizationId, `http://127.0.0.1:${port}/hooks/right`);
    const wrong = await endpoint(organizationId, `http://127.0.0.1:${port}/hooks/wrong`);
    const rotated = await platform.api.rotateSecret(
      create(RotateSecretRequestSchema, { id: right.id, overlapHours: 1 }),
      platform.call(organizationId),
    );
    const secrets = { right: right.secret, wrong: rotated.secret ?? "" };
    const server = await startDebianWebhook(image, port, secrets);
    try {
      await platform.emit(organizationId, "service.running", { service_name: "äöü €", status: "Running" });
      // The old secret keeps its header during the overlap.
      expect(await firstAttempt(organizationId, right.id)).toMatchObject({ responseStatus: 200 });
      expect(await firstAttempt(organizationId, wrong.id)).toMatchObject({ responseStatus: 500 });
    } finally {
      await server.stop();
    }
  });

  test("nginx responds with any status, and receives the specified request", async (context) => {
    if (typeof image === "string") return context.skip(image);
    const organizationId = "nginx";
    let behind: WebhookReceiver | undefined;
    const stopped: ReferenceServer[] = [];
    try {
      behind = await startWebhookReceiver((response, { path }) => {
        if (path === "/hang") return;
        response.write("first");
        if (path === "/well") response.end();
      });
      const nginx = await startNginx(
        image,
        `location = /301 { return 301 /elsewhere; }
         location = /307 { return 307 http://$host:$server_port/elsewhere; }
         location = /410 { return 410; }
         location = /429 { add_header Retry-After 1 always; return 429; }
         location / { proxy_pass ${behind.url}; }`,
      );
      stopped.push(nginx);
      // A connected, silent peer: the kernel accepts connections for a stopped program.
      const silent = await startNginx(image, "");
      stopped.push(silent);
      silent.signal("SIGSTOP");
      const expected: readonly (readonly [url: string, status: number | undefined, message: RegExp | undefined])[] = [
        [`${nginx.url}/well`, 200, undefined],
        [`${nginx.url}/301`, 301, /redirects are not followed/],
        [`${nginx.url}/307`, 307, /redirects are not followed/],
        [`${nginx.url}/410`, 410, /responded with 410/],
        [`${nginx.url}/429`, 429, /responded with 429/],
        // The status decides, however slowly the body follows.
        [`${nginx.url}/slow`, 200, undefined],
        [`${nginx.url}/hang`, undefined, /within 10 s/],
        [silent.url, undefined, /within 10 s/],
      ];
      const ids = await Promise.all(expected.map(async ([url]) => (await endpoint(organizationId, url)).id));
      await platform.emit(organizationId, "service.running");
      const attempts = await Promise.all(ids.map((id) => firstAttempt(organizationId, id)));
      for (const [index, [url, status, message]] of expected.entries()) {
        const attempt = attempts[index];
        expect(attempt?.responseStatus, url).toBe(status);
        if (message === undefined) expect(attempt?.errorMessage, url).toBeUndefined();
        else expect(attempt?.errorMessage, url).toMatch(message);
        expect(attempt?.deliveredAt !== undefined, url).toBe(message === undefined);
      }
      expect(behind.received.map(({ path }) => path)).not.toContain("/elsewhere");
    } finally {
      for (const server of stopped) await server.stop();
      await behind?.close();
    }
  });
});
