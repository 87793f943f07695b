import { afterAll, beforeAll, it } from "vitest";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { batchesOf, type End, extremesOf } from "./extremes.ts";
import { createPostgresqlWalk, longMs, type PostgresqlWalk, startWalkPlatform, walkLive } from "./postgresql-walk.ts";

/** The agents of members check their engines each second. */
const members = { node_count: 2, replication_mode: "async" };

/** Half of the parameters that a running engine accepts, in the catalog's order. */
export function liveCases(version: string, end: End, half: "first" | "second"): void {
  let platform: Platform;
  let walk: PostgresqlWalk;

  beforeAll(async () => {
    platform = await startWalkPlatform();
    walk = await createPostgresqlWalk(platform, version, members);
  }, longMs);
  afterAll(async () => {
    await walk?.close();
    await platform?.remove();
  }, longMs);

  it(
    "leaves it healthy, backed up and changeable",
    async () => {
      const extremes = extremesOf("postgresql", version, end, ({ needsRestart }) => !needsRestart);
      const [first = [], second = []] = batchesOf(extremes, Math.ceil(extremes.length / 2));
      await walkLive(platform, walk, half === "first" ? first : second);
    },
    longMs,
  );
}
