import { describe, expect, it } from "vitest";
import {
  hourMs,
  maintenanceContext,
  minorUpdate,
  mondayNoonMs,
  nodeImage,
  currentImage,
  packageUpdate,
  type ServiceChange,
  windowed,
} from "@holdfast/testing/controller/pending-updates.ts";
import { readyHost } from "@holdfast/testing/platform/ready-host.ts";
import { guestKernelSeries } from "@holdfast/compute/compute-provider.ts";
import { noMaintenance } from "./maintenance-record.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { planMaintenance } from "./maintenance-plan.ts";
import { type ImageUrgency, seriesNameOf, type NodeImageObject } from "./node-image.ts";
import type { MaintenanceContext } from "./pending-update.ts";
import { awaitedImages, pendingUpdates } from "./pending-updates.ts";

const at = (text: string) => Date.parse(text);
const minute = (time: number | null | undefined) => (time == null ? time : new Date(time).toISOString().slice(0, 16));

describe("pending updates", () => {
  it("are none for the newest image", () => {
    expect(
      pendingUpdates(
        windowed(),
        maintenanceContext([nodeImage("trixie-1", "17.10", 0, { newest: true })], mondayNoonMs),
      ),
    ).toEqual([]);
    expect(
      pendingUpdates(
        windowed({ spec: { image: "trixie-2" } }),
        maintenanceContext([currentImage, minorUpdate], mondayNoonMs),
      ),
    ).toEqual([]);
  });

  it("are none for engines of the host, and for a service that is being deleted", () => {
    expect(pendingUpdates(windowed(), { ...maintenanceContext([minorUpdate], mondayNoonMs), image: "" })).toEqual([]);
    const deleted = { ...windowed(), metadata: { ...windowed().metadata, deletionRequestedAt: 1 } };
    expect(pendingUpdates(deleted, maintenanceContext([currentImage, minorUpdate], mondayNoonMs))).toEqual([]);
  });

  describe("of an image with another text library", () => {
    const withIcu = (one: NodeImageObject, ICU: string) => ({
      ...one,
      spec: { ...one.spec, textLibraries: { libc: "2.41", ICU } },
    });
    const images = [withIcu(currentImage, "72.1"), withIcu(minorUpdate, "76.1")];

    it("are not applied automatically if databases use it, and name the remedy", () => {
      const urgent = {
        ...images[1]!,
        spec: { ...images[1]!.spec, urgent: { noticeHours: 1, reason: "CVE", markedAt: 0 } },
      };
      for (const there of [images, [images[0]!, urgent]]) {
        const using = maintenanceContext(there, mondayNoonMs, { textLibraries: ["ICU"] });
        const [update] = pendingUpdates(windowed(), using);
        expect(update).toMatchObject({ id: "trixie-2", applyAt: null, changesTextOrder: true });
        expect(update?.blocked).toMatch(/ICU 72\.1 to 76\.1.*accept_text_order_change.*REINDEX/);
        expect(planMaintenance(windowed(), { ...using, now: mondayNoonMs + 1_000 * hourMs }, () => true).action).toBe(
          "none",
        );
      }
    });

    it.each([
      ["none of the changed libraries is in use", images, ["libc"]],
      ["no library is in use", images, []],
      ["the library is the same", [withIcu(currentImage, "76.1"), withIcu(minorUpdate, "76.1")], ["ICU"]],
      ["the previous image's version is unknown", [currentImage, withIcu(minorUpdate, "76.1")], ["ICU"]],
    ])("are ordinary if %s", (_case, there, textLibraries) => {
      const [update] = pendingUpdates(windowed(), maintenanceContext(there, mondayNoonMs, { textLibraries }));
      expect(update).toMatchObject({ changesTextOrder: false, blocked: null, applyAt: expect.any(Number) });
    });
  });

  describe("of a virtual machine's kernel", () => {
    const kernel = (name: string, version: string, createdAt: number, urgent?: ImageUrgency): NodeImageObject => ({
      ...nodeImage(name, version, createdAt, { newest: createdAt > 0, ...(urgent && { urgent }) }),
      spec: { engines: [{ ...guestKernelSeries, engineVersion: version }], urgent: urgent ?? null },
      status: { newestOf: createdAt > 0 ? [seriesNameOf(guestKernelSeries.engine, guestKernelSeries.version)] : [] },
    });
    const kernels = [kernel("guest-1", "6.12.48", 0), kernel("guest-2", "6.12.57", mondayNoonMs)];
    const guests = (images: readonly NodeImageObject[], change: Partial<MaintenanceContext> = {}) => ({
      ...maintenanceContext(images, mondayNoonMs),
      guestKernel: "guest-1",
      ...change,
    });

    it("have both versions, and wait for the window as an image does", () => {
      const [update, ...rest] = pendingUpdates(windowed(), guests(kernels));
      expect(update).toMatchObject({
        id: "guest-2",
        kind: "guest_kernel",
        title: "Linux 6.12.48 to 6.12.57",
        from: "6.12.48",
        to: "6.12.57",
        requiresRestart: true,
        urgent: false,
        blocked: null,
      });
      expect(rest).toEqual([]);
      const [packages_] = pendingUpdates(windowed(), maintenanceContext([currentImage, packageUpdate], mondayNoonMs));
      expect(update?.applyAt).toBe(packages_?.applyAt);
    });

    it("name the kernels if only the loader differs", () => {
      const [update] = pendingUpdates(windowed(), guests([kernels[0]!, kernel("guest-2", "6.12.48", mondayNoonMs)]));
      expect(update).toMatchObject({ from: "guest-1", to: "guest-2" });
    });

    it("are listed beside an image, and begin with it", () => {
      const images = [currentImage, minorUpdate, ...kernels];
      expect(pendingUpdates(windowed(), guests(images)).map(({ id }) => id)).toEqual(["trixie-2", "guest-2"]);
    });

    it.each<[string, ManagedServiceObject, MaintenanceContext]>([
      ["in containers", windowed(), guests(kernels, { guestKernel: "" })],
      ["where the newest is the current one", windowed({ spec: { guestKernel: "guest-2" } }), guests(kernels)],
      [
        "where one of the hosts lacks it",
        windowed(),
        guests(kernels, {
          hosts: [
            readyHost("a", {}, { imageIds: ["guest-1", "guest-2"] }),
            readyHost("b", {}, { imageIds: ["guest-1"] }),
          ],
        }),
      ],
      [
        "where the newest is an older one",
        windowed(),
        guests([kernel("guest-1", "6.12.57", 0), kernel("guest-2", "6.12.48", mondayNoonMs)]),
      ],
    ])("are none %s", (_where, of, there) => {
      expect(pendingUpdates(of, there)).toEqual([]);
    });

    it("name the hosts that lack a newer one", () => {
      const b = readyHost("b", {}, { imageIds: ["guest-1"] });
      const hosts = [readyHost("a", {}, { imageIds: ["guest-1", "guest-2"] }), b];
      const awaited = awaitedImages(windowed(), guests(kernels, { hosts }));
      expect(awaited.map((one) => [one.image.metadata.id, one.missingOn])).toEqual([["guest-2", ["b"]]]);
    });

    it("are not applied automatically after a rollback, and are urgent if marked", () => {
      const refusedGuestKernel = { image: "guest-2", message: "It did not start.", at: mondayNoonMs };
      const change = { status: { maintenance: { ...noMaintenance, refusedGuestKernel } } };
      const [refused] = pendingUpdates(windowed(change), guests(kernels));
      expect(refused).toMatchObject({ applyAt: null, blocked: expect.stringContaining("It did not start.") });
      const urgent = { noticeHours: 2, reason: "CVE-2026-1", markedAt: mondayNoonMs };
      const marked = [kernels[0]!, kernel("guest-2", "6.12.57", mondayNoonMs, urgent)];
      const [update] = pendingUpdates(windowed(), guests(marked));
      expect(update).toMatchObject({ urgent: true, applyAt: mondayNoonMs + 2 * hourMs });
      expect(update?.description).toContain("CVE-2026-1");
    });
  });

  describe("of a keeper", () => {
    const under = (...keepers: MaintenanceContext["keepers"]) => ({ ...maintenanceContext([], mondayNoonMs), keepers });
    const status = { maintenance: { ...noMaintenance, keeperSince: mondayNoonMs - hourMs } };

    it("name the current and next keeper, since the difference was found", () => {
      const [update, ...rest] = pendingUpdates(windowed({ status }), under({ has: 3, next: 5 }, { has: 4, next: 5 }));
      expect(update).toMatchObject({
        id: "keeper-5",
        kind: "keeper",
        from: "3",
        to: "5",
        requiresRestart: true,
        availableSince: mondayNoonMs - hourMs,
        applyAt: expect.any(Number),
        blocked: null,
      });
      expect(rest).toEqual([]);
    });

    // biome-ignore format: a table, aligned so that it reads as one
    it.each<[string, MaintenanceContext["keepers"], string[]]>([
      ["an agent reports no protocol version",             [{ has: 0, next: 5 }],                      ["keeper-5"]],
      ["one machine of several has an older one",          [{ has: 5, next: 5 }, { has: 4, next: 5 }], ["keeper-5"]],
      ["the machine has the host's newest",                [{ has: 5, next: 5 }],                      []],
      ["the host has an older one",                        [{ has: 5, next: 4 }],                      []],
      ["a machine does not report",                        [],                                         []],
    ])("are listed if %s", (_case, keepers, ids) => {
      expect(pendingUpdates(windowed(), under(...keepers)).map(({ id }) => id)).toEqual(ids);
    });

    it("are recorded until all machines were restarted, and begin in the window", () => {
      const plan = (change: ServiceChange, context: MaintenanceContext) =>
        planMaintenance(windowed(change), context, () => true);
      const behind = under({ has: 3, next: 5 });
      expect(plan({}, behind)).toEqual({ action: "note", keeperSince: mondayNoonMs });
      expect(plan({ status }, under({ has: 5, next: 5 }))).toEqual({ action: "note", keeperSince: null });
      // It does not respond: a restart would be unknown.
      expect(plan({ status }, under())).toEqual({ action: "none", recheckInMs: null });
      const at = pendingUpdates(windowed({ status }), behind)[0]?.applyAt ?? 0;
      const announced = [{ id: "keeper-5", applyAt: at }];
      const due = { status: { maintenance: { ...status.maintenance, announced } } };
      expect(plan(due, { ...behind, now: at })).toMatchObject({ action: "begin", updates: [{ id: "keeper-5" }] });
    });
  });

  it("are none for another version's image", () => {
    expect(
      pendingUpdates(
        windowed(),
        maintenanceContext([currentImage, nodeImage("sid-2", "18.1", 1, { newest: true, line: "18" })], 2),
      ),
    ).toEqual([]);
  });

  it("distinguish a minor version of the engine from newer packages", () => {
    const [engine] = pendingUpdates(windowed(), maintenanceContext([currentImage, minorUpdate], mondayNoonMs));
    expect(engine).toMatchObject({ id: "trixie-2", kind: "engine_minor", from: "17.10", to: "17.11", urgent: false });
    const [system] = pendingUpdates(windowed(), maintenanceContext([currentImage, packageUpdate], mondayNoonMs));
    expect(system).toMatchObject({ id: "trixie-2", kind: "image", from: "trixie-1", to: "trixie-2" });
  });

  it("take the version from the engine if the image is not registered", () => {
    const [update] = pendingUpdates(
      windowed(),
      maintenanceContext([minorUpdate], mondayNoonMs, { engineVersion: "17.9 (Debian 17.9-1)" }),
    );
    expect(update).toMatchObject({ kind: "engine_minor", from: "17.9", to: "17.11" });
  });

  it("name waiting parameters, since they were found", () => {
    const waits = { pendingRestart: ["max_connections", "shared_buffers"] };
    const status = { maintenance: { ...noMaintenance, restartSince: mondayNoonMs - hourMs } };
    const [update] = pendingUpdates(windowed({ status }), maintenanceContext([], mondayNoonMs, waits));
    expect(update).toMatchObject({
      id: "restart",
      kind: "restart",
      from: null,
      to: null,
      availableSince: mondayNoonMs - hourMs,
    });
    expect(update?.description).toContain("max_connections, shared_buffers");
  });

  const degraded = (...names: string[]) => ({
    status: "degraded" as const,
    since: 0,
    reason: "",
    checks: names.map((name) => ({ name, status: "degraded" as const, nodeId: "n", since: 0, reason: "" })),
  });

  // biome-ignore format: a table, aligned so that it reads as one
  it.each([
    ["stopped",        { spec: { power: "off" as const }, status: { state: "Stopped" as const } }, {}, /stopped.*Start it/],
    ["in Error",       { status: { state: "Error" as const } }, {}, /must be Running/],
    ["with an invalid database", { status: { health: degraded("databases") } }, {}, undefined],
    ["with a lost slot",         { status: { health: degraded("logical_slots") } }, {}, undefined],
    ["not healthy otherwise",    { status: { health: degraded("databases", "storage") } }, {}, /It must be healthy/],
    ["not healthy",    { status: { health: { status: "degraded" as const, since: 0, reason: "The disk is 90% full.", checks: [] } } }, {}, /90% full/],
    ["out of space",   {}, { freeBytes: 1n << 20n }, /64 MiB/],
    ["without measured disk space", {}, { freeBytes: 0n, dataBytes: 0n }, undefined],
  ])("of a service that is %s name the obstacle", (_name, change, instance, words) => {
    const [update] = pendingUpdates(windowed(change), maintenanceContext([currentImage, minorUpdate], mondayNoonMs, instance));
    if (words === undefined) expect(update?.blocked).toBeNull();
    else expect(update?.blocked).toMatch(words);
  });
});

describe("the time of an automatic update", () => {
  const applied = (images: readonly NodeImageObject[], now: number, change: ServiceChange = {}) =>
    minute(pendingUpdates(windowed(change), maintenanceContext(images, now))[0]?.applyAt);
  const first = applied([currentImage, minorUpdate], mondayNoonMs);
  const urgent = (noticeHours: number, markedAt: number): ImageUrgency => ({ noticeHours, markedAt, reason: "CVE" });

  it("is within the first hour of the window", () => {
    expect(first).toMatch(/^2026-11-22T03/);
  });

  it("is a week later without a day's notice", () => {
    const late = nodeImage("trixie-2", "17.11", at("2026-11-21T12:00:00Z"), { newest: true });
    expect(applied([currentImage, late], at("2026-11-21T13:00:00Z"))).toMatch(/^2026-11-29T03/);
  });

  it("is now in an open window, and next week if it is about to close", () => {
    expect(applied([currentImage, minorUpdate], at("2026-11-22T04:20:00Z"))).toBe(first);
    expect(applied([currentImage, minorUpdate], at("2026-11-22T04:40:00Z"))).toMatch(/^2026-11-29T03/);
  });

  it("is the end of an urgent update's notice, also outside of the window, and remains due", () => {
    const marked = { ...minorUpdate, spec: { ...minorUpdate.spec, urgent: urgent(48, mondayNoonMs) } };
    for (const now of [mondayNoonMs, mondayNoonMs + 47 * hourMs, mondayNoonMs + 400 * hourMs])
      expect(applied([currentImage, marked], now)).toBe("2026-11-18T12:00");
  });

  it("is in the window for an urgent one whose notice ends after it", () => {
    const marked = { ...minorUpdate, spec: { ...minorUpdate.spec, urgent: urgent(300, mondayNoonMs) } };
    expect(applied([currentImage, marked], mondayNoonMs)).toBe(first);
  });

  it("keeps the urgency of an image that was replaced by a newer one", () => {
    const between = nodeImage("trixie-1b", "17.10", mondayNoonMs - hourMs, {
      urgent: urgent(24, mondayNoonMs - hourMs),
    });
    const [update] = pendingUpdates(windowed(), maintenanceContext([currentImage, between, minorUpdate], mondayNoonMs));
    expect(update).toMatchObject({ id: "trixie-2", urgent: true });
    expect(minute(update?.applyAt)).toBe("2026-11-17T11:00");
    // A service that runs from it already has the urgent change.
    const [after] = pendingUpdates(
      windowed({ spec: { image: "trixie-1b" } }),
      maintenanceContext([currentImage, between, minorUpdate], mondayNoonMs),
    );
    expect(after?.urgent).toBe(false);
  });

  it("is never for an image that was rolled back; another one is tried again", () => {
    const refused = { image: "trixie-2", message: "The engine did not start.", at: mondayNoonMs };
    const change = { status: { maintenance: { ...noMaintenance, refused } } };
    const [update] = pendingUpdates(windowed(change), maintenanceContext([currentImage, minorUpdate], mondayNoonMs));
    expect(update).toMatchObject({ applyAt: null, blocked: expect.stringContaining("The engine did not start.") });
    const newer = nodeImage("trixie-3", "17.12", mondayNoonMs + 1, { newest: true });
    expect(applied([currentImage, { ...minorUpdate, status: { newestOf: [] } }, newer], mondayNoonMs + 2, change)).toBe(
      first,
    );
  });
});
