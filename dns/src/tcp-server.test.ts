import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { silentLog } from "@holdfast/common/log.ts";
import { afterEach, expect, test } from "vitest";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createQueryRateLimit } from "./query-rate-limit.ts";
import { startTcpServer, type TcpServer } from "./tcp-server.ts";

let server: TcpServer;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server.close();
});

async function open(localAddress: string) {
  const socket = connect({ host: "127.0.0.1", port: server.port, localAddress });
  sockets.push(socket);
  let bytes = 0;
  socket.on("data", (data) => void (bytes += data.byteLength));
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return {
    socket,
    sendQuery: (count: number) =>
      socket.write(Buffer.concat(Array.from({ length: count }, () => Buffer.from("0001ff", "hex")))),
    responses: () => bytes / 3,
  };
}

test("TCP queries are limited by source, without an effect on other sources", async () => {
  let ms = 0;
  server = await startTcpServer({
    host: "127.0.0.1",
    port: 0,
    respond: (query) => query,
    rate: createQueryRateLimit(10, () => ms, 20),
    log: silentLog,
  });
  const [greedy, second] = [await open("127.0.0.66"), await open("127.0.0.66")];
  greedy.sendQuery(1_000);
  await waitUntil("the burst has its responses", () => greedy.responses() === 20);
  second.sendQuery(1);
  const modest = await open("127.0.0.67");
  for (let n = 1; n <= 20; n += 1) {
    modest.sendQuery(1);
    await waitUntil("it has a response", () => modest.responses() === n);
  }
  expect(greedy.responses() + second.responses()).toBe(20);
  ms = 1_000;
  await waitUntil("the responses of one second have arrived", () => greedy.responses() + second.responses() === 30);
});

test("a full server closes the longest idle connection of the largest source", async () => {
  server = await startTcpServer({
    host: "127.0.0.1",
    port: 0,
    respond: (query) => query,
    rate: createQueryRateLimit(1_000, () => performance.now()),
    connections: 4,
    log: silentLog,
  });
  const greedy: Awaited<ReturnType<typeof open>>[] = [];
  for (let n = 0; n < 4; n += 1) greedy.push(await open("127.0.0.66"));
  greedy[0]?.sendQuery(1);
  await waitUntil("the first connection has been busy last", () => greedy[0]?.responses() === 1);
  const modest = await open("127.0.0.67");
  modest.sendQuery(1);
  await waitUntil("the new connection has a response", () => modest.responses() === 1);
  await waitUntil("one connection is closed", () => greedy.filter(({ socket }) => socket.closed).length === 1);
  expect(greedy[1]?.socket.closed).toBe(true);
});
