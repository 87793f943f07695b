import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createConnections } from "./connections.ts";

it("a full port closes the oldest unauthenticated connection of the largest site", async () => {
  const connections = createConnections({
    max: 8,
    unauthenticatedMs: 600_000,
    unauthenticatedBytes: 1_000,
    sources: (address) => [
      { name: address, factor: 1 },
      { name: address.split(".").slice(0, 3).join("."), factor: 2 },
    ],
  });
  const listener = createServer((socket) => void connections.add(socket.on("error", () => undefined)));
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  const sockets: Socket[] = [];
  const closed: string[] = [];
  onTestFinished(() => {
    connections.close();
    for (const socket of sockets) socket.destroy();
    listener.close();
  });
  const open = async (localAddress: string) => {
    const socket = connect({ port, host: "127.0.0.1", localAddress });
    sockets.push(socket);
    socket.on("error", () => undefined).resume();
    socket.once("close", () => closed.push(localAddress));
    const before = connections.size;
    await waitUntil("it is there", () => connections.size > before || before === 8);
  };
  // A single source has two; the six sources of one site have one each, three in proportion to its size.
  for (const address of ["127.0.2.1", "127.0.2.1"]) await open(address);
  for (let n = 1; n <= 6; n += 1) await open(`127.0.1.${n}`);
  await open("127.0.3.1");
  await waitUntil("one was ended", () => closed.length > 0);
  expect(closed).toEqual(["127.0.1.1"]);
  expect(connections.size).toBe(8);
});
