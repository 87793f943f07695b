import { createServer, type Server } from "node:net";
import { afterEach, expect, test } from "vitest";
import { canonical, isBindable, listeningIn, listeningSockets } from "./listening-sockets.ts";

const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
const row = (local: string, state: string, uid: number) =>
  `   1: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000 ${String(uid).padStart(5)}        0 15 1 0 100 0 0 10 0`;

test("the kernel's list has listening sockets and no sessions", () => {
  const text = [head, row("0100007F:1538", "0A", 61_000), row("00000000:0016", "0A", 0), row("0100007F:1538", "01", 7)];
  expect(listeningIn(text.join("\n"))).toEqual([
    { address: "127.0.0.1", port: 5432, uid: 61_000 },
    { address: "0.0.0.0", port: 22, uid: 0 },
  ]);
});

test("IPv6 addresses have their canonical text", () => {
  const six = (address: string) => row(`${address}:0050`, "0A", 0).replace(" 00000000:0000", ` ${"0".repeat(32)}:0000`);
  const text = ["00000000000000000000000001000000", "B80D0120000000000000000002000000", "0".repeat(32)].map(six);
  expect(listeningIn(text.join("\n")).map(({ address }) => address)).toEqual(["::1", "2001:db8::2", "::"]);
  expect(canonical("2001:0DB8:0:0::2")).toBe("2001:db8::2");
});

let servers: Server[] = [];
afterEach(() => {
  for (const server of servers) server.close();
  servers = [];
});

async function listen(address: string): Promise<number> {
  const server = createServer().listen(0, address);
  servers.push(server);
  await new Promise((resolve) => server.once("listening", resolve));
  return (server.address() as { port: number }).port;
}

test.skipIf(process.platform !== "linux")(
  "sockets of this host are found among all others, by either family",
  async () => {
    const found = { uid: process.getuid?.() };
    const [four, six] = [await listen("127.77.0.9"), await listen("::1")];
    const sockets = await listeningSockets();
    expect(sockets).toContainEqual({ ...found, address: "127.77.0.9", port: four });
    expect(sockets).toContainEqual({ ...found, address: "::1", port: six });
  },
);

test("an address of this host can be bound, one of documentation cannot", async () => {
  expect(await isBindable("127.0.0.1")).toBe(true);
  expect(await isBindable("192.0.2.77")).toBe(false);
});
