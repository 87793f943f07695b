import { describe, expect, test } from "vitest";
import {
  hourMs,
  maintenanceWorld,
  minor,
  monday,
  old,
  type ServiceChange,
  windowed,
} from "../../../../test/support/controller/pending-world.ts";
import { noMaintenance } from "../service/maintenance-memory.ts";
import { planMaintenance } from "./maintenance-plan.ts";
import type { NodeImageObject } from "./node-image.ts";
import { pendingUpdates } from "./pending-updates.ts";

describe("what is done about pending updates", () => {
  const plan = (
    images: readonly NodeImageObject[],
    now: number,
    change: ServiceChange = {},
    free = true,
    instance = {},
  ) => planMaintenance(windowed(change), maintenanceWorld(images, now, instance), () => free);
  const applyAt = pendingUpdates(windowed(), maintenanceWorld([old, minor], monday))[0]?.applyAt ?? 0;
  const told: ServiceChange = {
    status: { maintenance: { ...noMaintenance, announced: [{ id: "trixie-2", applyAt }] } },
  };

  test("is nothing, and no timer, for what has none", () => {
    expect(plan([], monday)).toEqual({ action: "none", lookAgainMs: null });
  });

  test("is a look a day before the time, then the announcement, once", () => {
    expect(plan([old, minor], monday)).toEqual({ action: "none", lookAgainMs: applyAt - 24 * hourMs - monday });
    const dayAhead = plan([old, minor], applyAt - 24 * hourMs);
    expect(dayAhead).toMatchObject({
      action: "announce",
      updates: [{ id: "trixie-2" }],
      known: [{ id: "trixie-2", applyAt }],
    });
    expect(plan([old, minor], applyAt - 24 * hourMs, told)).toEqual({ action: "none", lookAgainMs: 24 * hourMs });
  });

  test("is the announcement at once for an urgent one, and anew when its time changes", () => {
    const urgent = { noticeHours: 48, markedAt: monday, reason: "CVE" };
    const marked = { ...minor, spec: { ...minor.spec, urgent } };
    expect(plan([old, marked], monday, told)).toMatchObject({
      action: "announce",
      known: [{ applyAt: monday + 48 * hourMs }],
    });
  });

  test("is to forget what was announced when nothing is pending any more", () => {
    expect(plan([], monday, told)).toEqual({ action: "announce", updates: [], known: [] });
  });

  test("begins at its time, and not before", () => {
    expect(plan([old, minor], applyAt - 1, told)).toEqual({ action: "none", lookAgainMs: 1 });
    expect(plan([old, minor], applyAt, told)).toMatchObject({ action: "begin", updates: [{ id: "trixie-2" }] });
  });

  test("takes a restart along with an image", () => {
    const maintenance = { ...noMaintenance, restartSince: applyAt - hourMs };
    const waits = { pendingRestart: ["max_connections"] };
    const nextWeek = startOf(
      pendingUpdates(windowed({ status: { maintenance } }), maintenanceWorld([old, minor], applyAt, waits)),
    );
    const announced = [{ id: "trixie-2", applyAt }];
    const planned = plan(
      [old, minor],
      applyAt,
      { status: { maintenance: { ...maintenance, announced } } },
      true,
      waits,
    );
    expect(nextWeek).toBeGreaterThan(applyAt);
    expect(planned).toMatchObject({ action: "begin", updates: [{ id: "trixie-2" }, { id: "restart" }] });
  });

  // biome-ignore format: a table, aligned so that it reads as one
  test.each([
    ["the fleet's brake is on",     told, false],
    ["another operation has it",    { status: { ...told.status, operationId: "op" } }, true],
    ["it is not healthy",           { status: { ...told.status, health: { status: "unhealthy" as const, since: 0, reason: "", checks: [] } } }, true],
  ])("waits while %s", (_name, change, free) => {
    expect(plan([old, minor], applyAt, change, free)).toEqual({ action: "none", lookAgainMs: 15_000 });
  });

  test("notes since when parameters wait, and that they do not any more; silence changes nothing", () => {
    const waits = { pendingRestart: ["max_connections"] };
    expect(plan([], monday, {}, true, waits)).toEqual({ action: "note", restartSince: monday });
    const status = { maintenance: { ...noMaintenance, restartSince: monday } };
    expect(plan([], monday, { status })).toEqual({ action: "note", restartSince: null });
    expect(plan([], monday, { status }, true, { state: "starting" })).toEqual({ action: "none", lookAgainMs: null });
  });
});

function startOf(updates: readonly { readonly kind: string; readonly applyAt: number | null }[]): number {
  return updates.find(({ kind }) => kind === "restart")?.applyAt ?? 0;
}
