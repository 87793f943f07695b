import { describe, expect, test } from "vitest";
import {
  hourMs,
  maintenanceContext,
  minorUpdate,
  mondayNoonMs,
  currentImage,
  type ServiceChange,
  windowed,
} from "@holdfast/testing/controller/pending-updates.ts";
import { noMaintenance } from "./maintenance-record.ts";
import { planMaintenance } from "./maintenance-plan.ts";
import type { NodeImageObject } from "./node-image.ts";
import { pendingUpdates } from "./pending-updates.ts";

describe("the action for pending updates", () => {
  const plan = (
    images: readonly NodeImageObject[],
    now: number,
    change: ServiceChange = {},
    free = true,
    instance = {},
  ) => planMaintenance(windowed(change), maintenanceContext(images, now, instance), () => free);
  const applyAt =
    pendingUpdates(windowed(), maintenanceContext([currentImage, minorUpdate], mondayNoonMs))[0]?.applyAt ?? 0;
  const announced: ServiceChange = {
    status: { maintenance: { ...noMaintenance, announced: [{ id: "trixie-2", applyAt }] } },
  };

  test("is none, without a timer, if nothing is pending", () => {
    expect(plan([], mondayNoonMs)).toEqual({ action: "none", recheckInMs: null });
  });

  test("is a check a day before the time, then one announcement", () => {
    expect(plan([currentImage, minorUpdate], mondayNoonMs)).toEqual({
      action: "none",
      recheckInMs: applyAt - 24 * hourMs - mondayNoonMs,
    });
    const dayAhead = plan([currentImage, minorUpdate], applyAt - 24 * hourMs);
    expect(dayAhead).toMatchObject({
      action: "announce",
      updates: [{ id: "trixie-2" }],
      announced: [{ id: "trixie-2", applyAt }],
    });
    expect(plan([currentImage, minorUpdate], applyAt - 24 * hourMs, announced)).toEqual({
      action: "none",
      recheckInMs: 24 * hourMs,
    });
  });

  test("is an immediate announcement of an urgent one, and another one if its time changes", () => {
    const urgent = { noticeHours: 48, markedAt: mondayNoonMs, reason: "CVE" };
    const marked = { ...minorUpdate, spec: { ...minorUpdate.spec, urgent } };
    expect(plan([currentImage, marked], mondayNoonMs, announced)).toMatchObject({
      action: "announce",
      announced: [{ applyAt: mondayNoonMs + 48 * hourMs }],
    });
  });

  test("is to clear the announcements once nothing is pending", () => {
    expect(plan([], mondayNoonMs, announced)).toEqual({ action: "announce", updates: [], announced: [] });
  });

  test("begins at its time, and not before", () => {
    expect(plan([currentImage, minorUpdate], applyAt - 1, announced)).toEqual({ action: "none", recheckInMs: 1 });
    expect(plan([currentImage, minorUpdate], applyAt, announced)).toMatchObject({
      action: "begin",
      updates: [{ id: "trixie-2" }],
    });
  });

  test("combines a restart with an image", () => {
    const maintenance = { ...noMaintenance, restartSince: applyAt - hourMs };
    const waits = { pendingRestart: ["max_connections"] };
    const nextWeek = startOf(
      pendingUpdates(
        windowed({ status: { maintenance } }),
        maintenanceContext([currentImage, minorUpdate], applyAt, waits),
      ),
    );
    const announced = [{ id: "trixie-2", applyAt }];
    const planned = plan(
      [currentImage, minorUpdate],
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
    ["the rollout limiter is at its limit", announced, false],
    ["another operation is in progress", { status: { ...announced.status, operationId: "op" } }, true],
    ["it is not healthy",           { status: { ...announced.status, health: { status: "unhealthy" as const, since: 0, reason: "", checks: [] } } }, true],
  ])("waits while %s", (_name, change, free) => {
    expect(plan([currentImage, minorUpdate], applyAt, change, free)).toEqual({ action: "none", recheckInMs: 15_000 });
  });

  test("records since when parameters wait, until they do not; silence changes nothing", () => {
    const waits = { pendingRestart: ["max_connections"] };
    expect(plan([], mondayNoonMs, {}, true, waits)).toEqual({ action: "note", restartSince: mondayNoonMs });
    const status = { maintenance: { ...noMaintenance, restartSince: mondayNoonMs } };
    expect(plan([], mondayNoonMs, { status })).toEqual({ action: "note", restartSince: null });
    expect(plan([], mondayNoonMs, { status }, true, { state: "starting" })).toEqual({
      action: "none",
      recheckInMs: null,
    });
  });
});

function startOf(updates: readonly { readonly kind: string; readonly applyAt: number | null }[]): number {
  return updates.find(({ kind }) => kind === "restart")?.applyAt ?? 0;
}
