import { X509Certificate } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type AgentIdentity, helloOf, openSession, renew } from "@holdfast/testing/machines/test-agent.ts";
import {
  newInstallation,
  startController,
  type TestController,
  type TestInstallation,
} from "@holdfast/testing/controller/test-fleet.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

let installation: TestInstallation;
let controller: TestController;

beforeAll(async () => {
  installation = await newInstallation();
  controller = await startController(installation, "c-1", {
    lifetimes: { identityMs: 6_000 },
    limits: { checkIntervalMs: 100 },
  });
});
afterAll(() => installation?.close());

/** End of the identity's certificate. */
const endOf = ({ chain }: AgentIdentity) => new X509Certificate(chain).validToDate.getTime();

test("certificates of six seconds: an agent that renews stays, one that does not is cut", async () => {
  const lazy = await controller.newAgent("lazy");
  const lazySession = openSession(controller.dial(lazy), helloOf("lazy"));
  await lazySession.expect("welcome");

  let identity = await controller.newAgent("diligent");
  let session = openSession(controller.dial(identity), helloOf("diligent"));
  await session.expect("welcome");
  const firstEndsAt = endOf(identity);
  while (Date.now() <= firstEndsAt + 1_000) {
    const renewAt = endOf(identity) - 4_500;
    await waitUntil("a quarter of the certificate's life is over", () => Date.now() >= renewAt);
    identity = await renew(controller.address, identity);
    const next = openSession(controller.dial(identity), helloOf("diligent"));
    await next.expect("welcome");
    expect((await session.ended).details).toContain("newer stream");
    session = next;
    expect(controller.fleet.session("diligent")?.controllerId).toBe("c-1");
  }

  expect((await lazySession.ended).details).toBe("the certificate expired");
  const late = openSession(controller.dial(lazy), helloOf("lazy"));
  expect([14, 16]).toContain((await late.ended).code);
  await expect(renew(controller.address, lazy)).rejects.toThrow(/UNAVAILABLE|UNAUTHENTICATED/);
  session.close();
});
