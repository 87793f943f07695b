import { connect } from "node:net";
import { text } from "node:stream/consumers";
import type { UsageReport } from "@holdfast/tds/run/usage.ts";
import type { Instance } from "../engine-driver.ts";
import type { UnsupportedFeaturesFacet } from "../insight-facets.ts";
import { usageSocket } from "./layout.ts";

const timeoutMs = 2_000;

/** Counts of the front end since its start. */
export async function readUsage(instance: Pick<Instance, "paths">, signal: AbortSignal): Promise<UsageReport> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const socket = connect({ path: usageSocket(instance), signal: bounded });
  // A late error has no other listener.
  socket.on("error", () => undefined);
  try {
    return JSON.parse(await text(socket)) as UsageReport;
  } finally {
    socket.destroy();
  }
}

export const unsupportedFeatures: UnsupportedFeaturesFacet = {
  async read(instance, signal) {
    const { features, sinceMs } = await readUsage(instance, signal);
    return { features, since: new Date(sinceMs) };
  },
};
