import { createSocket } from "node:dgram";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { checkPorts, portNames, portsOf } from "./ports.ts";

/** A clock that advances only by sleeping. */
function steppedClock() {
  let now = 0;
  return {
    now: () => now,
    async sleep(ms: number) {
      now += ms;
    },
  };
}

test("no two blocks share a port, and none has one of the range of outgoing connections", () => {
  const ports = Array.from({ length: 178 }, (_, index) => Object.values(portsOf(`127.${77 + index}`))).flat();
  expect(new Set(ports).size).toBe(178 * portNames.length);
  expect(Math.max(...ports)).toBeLessThan(32_768);
});

test("a busy port is an error that names it and its flag", async () => {
  const ports = portsOf("127.200");
  const server = createServer().listen(ports.history, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  await expect(checkPorts(ports, steppedClock())).rejects.toThrow(
    `port ${ports.history} is busy; choose another with --history-port`,
  );
  await new Promise((resolve) => server.close(resolve));
  await checkPorts(ports, steppedClock());
});

test("external ports are checked at the listen address too, DNS over UDP as well", async () => {
  const ports = portsOf("127.201");
  const socket = createSocket("udp4");
  await new Promise<void>((resolve) => socket.bind(ports.dns, "127.0.0.2", resolve));
  await checkPorts(ports, steppedClock());
  await expect(checkPorts(ports, steppedClock(), "127.0.0.2")).rejects.toThrow(
    `port ${ports.dns} is busy on 127.0.0.2; choose another with --dns-port`,
  );
  await new Promise<void>((resolve) => socket.close(resolve));
  await checkPorts(ports, steppedClock(), "127.0.0.2");
});
