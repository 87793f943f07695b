import { createServer } from "node:net";
import { listenAt, openListeners } from "@holdfast/common/open-listeners.ts";
import { expect, onTestFinished, test } from "vitest";
import { createAddressPolicy } from "./address-policy.ts";
import { listenersAt, ownAddresses } from "./create-egress.ts";

const nothing = {
  listeners: [],
  addresses: [],
  members: () => [],
  loopbackBlock: "127.99",
  machineAddresses: () => [],
} as const;

test("listeners of this process are refused while they are open", async () => {
  const judge = createAddressPolicy(["127.0.0.0/8", "::1/128"], ownAddresses(nothing));
  const server = createServer();
  onTestFinished(() => void server.close());
  const port = await listenAt(server, { host: "127.0.0.1", port: 0 });
  expect(await judge.refusal("127.0.0.1", port)).toBe("own");
  expect(await judge.refusal("::1", port)).toBe("own");
  await new Promise((resolve) => server.close(resolve));
  expect(await judge.refusal("127.0.0.1", port)).toBeUndefined();
  expect(openListeners()).toEqual([]);
});

test("a listener that failed to open is not registered", async () => {
  const [first, second] = [createServer(), createServer()];
  onTestFinished(() => void first.close());
  const port = await listenAt(first, { host: "127.0.0.1", port: 0 });
  await expect(listenAt(second, { host: "127.0.0.1", port })).rejects.toThrow("EADDRINUSE");
  expect(openListeners()).toEqual([{ host: "127.0.0.1", port }]);
});

test("listener ports are refused at the external addresses of a NAT", async () => {
  const own = {
    ...nothing,
    listeners: ["0.0.0.0:8443", "https://10.0.0.1:2380"],
    addresses: ["8.8.4.4", "2606:4700::1"],
  };
  const judge = createAddressPolicy([], ownAddresses(own));
  for (const address of ["8.8.4.4", "2606:4700::1", "::ffff:8.8.4.4"])
    for (const port of [8_443, 2_380]) expect(await judge.refusal(address, port), `${address} ${port}`).toBe("own");
  expect(await judge.refusal("8.8.4.4", 443)).toBeUndefined();
  expect(await judge.refusal("8.8.8.8", 8_443)).toBeUndefined();
});

test("listenersAt combines each port with each address", () => {
  const listeners = ["0.0.0.0:8443", "postgres://db.internal/holdfast", "https://10.0.0.1:2380"];
  expect(listenersAt(["8.8.4.4", "name.example.com", "2606:4700::1"], listeners)).toEqual([
    ...listeners,
    "8.8.4.4:8443",
    "8.8.4.4:5432",
    "8.8.4.4:2380",
    "[2606:4700::1]:8443",
    "[2606:4700::1]:5432",
    "[2606:4700::1]:2380",
  ]);
  expect(listenersAt([], listeners)).toEqual(listeners);
});
