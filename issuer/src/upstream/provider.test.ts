import { createServer } from "node:net";
import { create } from "@bufbuild/protobuf";
import { createEgress } from "@holdfast/egress/create-egress.ts";
import { AppSignInSchema, IdentityProviderSchema } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import { expect, onTestFinished, test } from "vitest";
import { createProviders } from "./provider.ts";

test("an unavailable provider is called at most once a second", async () => {
  let connections = 0;
  const away = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  const at = { listeners: [], addresses: [], members: () => [], loopbackBlock: "127.254", machineAddresses: () => [] };
  // It listens directly, since egress refuses listeners of the platform.
  await new Promise<void>((resolve) => away.listen(0, "127.0.0.1", resolve));
  const egress = createEgress({ users: ["127.0.0.0/8"], operators: [] }, at);
  onTestFinished(async () => {
    away.close();
    await egress.close();
  });
  const { port } = away.address() as { port: number };
  const clock = { nowMs: 0 };
  const providers = createProviders(() => clock.nowMs);
  const app = { config: create(AppSignInSchema, { appId: "app" }), egress: egress.users };
  const provider = create(IdentityProviderSchema, { provider: "oidc", issuerUrl: `https://127.0.0.1:${port}` });
  for (let times = 0; times < 20; times += 1) await expect(providers.of(app, provider)).rejects.toThrow();
  const first = connections;
  expect(first).toBeGreaterThan(0);
  clock.nowMs += 1_000;
  for (let times = 0; times < 20; times += 1) await expect(providers.of(app, provider)).rejects.toThrow();
  expect(connections).toBe(2 * first);
  expect(first).toBeLessThan(20);
});

test("an app has at most 32 concurrent upstream sign-ins", async () => {
  const providers = createProviders(() => 0);
  const appOf = (appId: string) => ({ config: create(AppSignInSchema, { appId }) });
  const over = Promise.withResolvers<void>();
  const running = Array.from({ length: 40 }, () => providers.run(appOf("flooded"), () => over.promise));
  expect(running.filter((each) => each === undefined)).toHaveLength(8);
  await providers.run(appOf("other"), async () => undefined);
  over.resolve();
  await Promise.all(running.filter((each) => each !== undefined));
  expect(providers.run(appOf("flooded"), async () => undefined)).toBeDefined();
});
