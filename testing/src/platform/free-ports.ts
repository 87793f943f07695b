import { randomInt } from "node:crypto";
import { claim, listen } from "../controller/claim.ts";

/**
 * Ports above those of installations. With 10,000 added they are below Linux's ephemeral ports, since a Valkey listens
 * for its peers at its port plus 10,000.
 */
const [first, last] = [13_000, 22_767];

/** Ports of 127.0.0.1 without a listener that no other test of this host gets while this process lives. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = randomInt(first, last + 1);
    if ((await claim(`port-${port}`)) && (await isFree(port))) ports.push(port);
  }
  return ports;
}

async function isFree(port: number): Promise<boolean> {
  const server = await listen({ port, host: "127.0.0.1" });
  await new Promise<unknown>((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)));
  return server !== undefined;
}
