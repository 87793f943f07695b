import { parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { errorsMax } from "@holdfast/common/errors.ts";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { ProblemJson } from "@holdfast/testing/api/service-json.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { batchesOf, extremesOf } from "./extremes.ts";
import { createPostgresqlWalk, longMs, type PostgresqlWalk, startWalkPlatform } from "./postgresql-walk.ts";
import { printValues } from "./walked-service.ts";

/** Number of parameters in one request: a response has at most this many errors. */
const atOnce = errorsMax;

/** Cases for each parameter that the engine reads when it starts, and for settings that the catalog lacks. */
export function restartCases(version: string): void {
  let platform: Platform;
  let walk: PostgresqlWalk;

  beforeAll(async () => {
    platform = await startWalkPlatform();
    walk = await createPostgresqlWalk(platform, version, { node_count: 1 });
  }, longMs);
  afterAll(async () => {
    await walk?.close();
    await platform?.remove();
  }, longMs);

  it.each(["least", "greatest"] as const)(
    "leaves it healthy, backed up and changeable at the %s",
    async (end) => {
      for (const extreme of extremesOf("postgresql", version, end, ({ needsRestart }) => needsRestart)) {
        const value = await walk.set(extreme);
        if (value === undefined) continue;
        const accepted = { [extreme.name]: value };
        await walk.services.verb(walk.id, "restart");
        await walk.applied(accepted);
        await walk.has(accepted);
        await walk.runs(printValues(accepted));
        await walk.backedUp(printValues(accepted));
        await walk.manages();
        await walk.reset([extreme.name]);
      }
      await walk.services.verb(walk.id, "restart");
      await walk.runs("the defaults");
    },
    longMs,
  );

  it("rejects every other setting of the engine by its name", async () => {
    const rows = await walk.sql("SELECT name, setting FROM pg_settings WHERE context <> 'internal'");
    const offered = parametersOf("postgresql", version);
    const others = rows.filter(({ name }) => !offered.has(String(name)));
    expect(others.length).toBeGreaterThan(100);
    for (const batch of batchesOf(others, atOnce)) {
      const parameters = Object.fromEntries(batch.map(({ name, setting }) => [String(name), String(setting)]));
      const response = await platform.rest.patch<ProblemJson>(walk.path("/configuration"), { parameters });
      const pointers = expectStatus(response, 400).json.errors.map(({ pointer }) => pointer);
      expect(pointers).toEqual(expect.arrayContaining(Object.keys(parameters).map((name) => `/parameters/${name}`)));
    }
  });
}
