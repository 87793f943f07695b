import { readFile } from "node:fs/promises";

/** Bytes of a network interface since it came up. */
export interface NetworkTraffic {
  readonly receivedBytes: number;
  readonly sentBytes: number;
}

/** Undefined without such an interface. */
export async function networkTraffic(name: string): Promise<NetworkTraffic | undefined> {
  return trafficOf(await readFile("/proc/net/dev", "utf8"), name);
}

/** Reads /proc/net/dev (proc(5)). */
export function trafficOf(table: string, name: string): NetworkTraffic | undefined {
  const lines = table.split("\n").map((each) => each.trim());
  // A long name and its first figure have no blank between them.
  const line = lines.find((each) => each.startsWith(`${name}:`));
  if (line === undefined) return undefined;
  const figures = line
    .slice(name.length + 1)
    .trim()
    .split(/\s+/);
  return { receivedBytes: Number(figures[0]), sentBytes: Number(figures[8]) };
}
