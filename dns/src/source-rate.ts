import { isIPv4 } from "node:net";

/** How many queries one source may send. */
export interface SourceRate {
  /** `truncate` now and then while over the rate, so that a real client there comes back over TCP; otherwise `drop`. */
  admit(address: string, nowMs: number): "answer" | "truncate" | "drop";
}

interface Source {
  level: number;
  atMs: number;
  over: number;
}

const mostSources = 10_000;
const truncateEvery = 4;

export function createSourceRate(perSecond: number, burst = perSecond * 2): SourceRate {
  const sources = new Map<string, Source>();
  return {
    admit(address, nowMs) {
      const key = networkOf(address);
      let source = sources.get(key);
      if (source === undefined) {
        source = { level: burst, atMs: nowMs, over: 0 };
        // The oldest goes: memory stays bounded however many addresses are made up.
        if (sources.size >= mostSources) sources.delete(sources.keys().next().value ?? "");
        sources.set(key, source);
      }
      source.level = Math.min(burst, source.level + ((nowMs - source.atMs) * perSecond) / 1000);
      source.atMs = nowMs;
      if (source.level >= 1) {
        source.level -= 1;
        return "answer";
      }
      source.over += 1;
      return source.over % truncateEvery === 0 ? "truncate" : "drop";
    },
  };
}

/** One customer is one IPv4 address or one IPv6 /56. */
function networkOf(address: string): string {
  if (isIPv4(address)) return address;
  const mapped = /^::ffff:([0-9.]+)$/.exec(address);
  if (mapped?.[1] !== undefined) return mapped[1];
  const [head = "", tail] = address.split("::");
  const before = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = Array.from({ length: Math.max(0, 8 - before.length - after.length) }, () => "0");
  const groups = [...before, ...zeros, ...after].slice(0, 4).map((group) => Number.parseInt(group, 16) || 0);
  return [...groups.slice(0, 3), (groups[3] ?? 0) >> 8].join(":");
}
