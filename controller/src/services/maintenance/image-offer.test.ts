import { describe, expect, it, test } from "vitest";
import { readyHost } from "@holdfast/testing/platform/ready-host.ts";
import { guestKernelSeries } from "@holdfast/compute/compute-provider.ts";
import type { HostObject } from "#fleet/host/host.ts";
import { imageOffer, missingOn } from "./image-offer.ts";
import { seriesNameOf, type NodeImageObject } from "./node-image.ts";

const line = { engine: "postgresql", version: "17" };

interface HostReport {
  readonly engineVersion?: string;
  readonly madeAt?: number;
  readonly createdAt?: number;
  /** False for an image that machines run from, and that is no host's newest any more. */
  readonly newest?: boolean;
}

function image(id: string, { engineVersion = "17.10", madeAt, createdAt = 0, newest = true }: HostReport = {}) {
  const metadata = { id, name: id, organizationId: "", generation: 1, createdAt, updatedAt: 0 };
  const engines = [{ ...line, engineVersion }];
  const status = { newestOf: newest ? [seriesNameOf(line.engine, line.version)] : [] };
  return { metadata, spec: { engines, ...(madeAt !== undefined && { madeAt }), urgent: null }, status };
}

/** The last image is the newest. */
function host(id: string, ...imageIds: string[]): HostObject {
  const newest = imageIds.at(-1);
  const images = [{ ...line, available: true, ...(newest !== undefined && { image: newest }) }];
  return readyHost(id, {}, { imageIds }, { images });
}

const older = image("t-1", { madeAt: 1 });
const newer = image("t-2", { madeAt: 2 });
const minor = image("t-3", { engineVersion: "17.9", madeAt: 9 });
const superseded = (id: string, reports: HostReport) => image(id, { ...reports, newest: false });
const silent = (one: HostObject): HostObject => ({ ...one, status: { ...one.status, state: "unreachable" } });

describe("the image that is offered to a service", () => {
  // biome-ignore format: a table, aligned so that it reads as one
  it.each<[string, string, NodeImageObject[], HostObject[], string | undefined, string[] | undefined]>([
    // name, current image, register, hosts of its machines, offered image, hosts that lack a newer one
    ["is the newest of its host",                         "t-1", [superseded("t-1", { madeAt: 1 }), newer],          [host("a", "t-1", "t-2")],                        "t-2",     undefined],
    ["is none if it is the current one",                  "t-2", [newer],                                      [host("a", "t-1", "t-2")],                        undefined, undefined],
    ["is none that only another host has",                "t-1", [older, newer],                               [host("a", "t-1")],                               undefined, ["a"]],
    ["is the newer image that its own host has",          "t-0", [superseded("t-0", { madeAt: 0 }), older, newer],   [host("a", "t-0", "t-1")],                        "t-1",     ["a"]],
    ["is the newest that all of its hosts have",          "t-0", [superseded("t-0", { madeAt: 0 }), older, newer],   [host("a", "t-0", "t-1", "t-2"), host("b", "t-0", "t-1")], "t-1", ["b"]],
    ["is none if its hosts have no newer one in common", "t-0", [superseded("t-0", { madeAt: 0 }), older, newer],  [host("a", "t-0", "t-1"), host("b", "t-0", "t-2")], undefined, ["a"]],
    ["is also an imported one",                            "t-1", [older, newer],                              [host("a", "t-2", "t-1")],                        "t-2",     undefined],
    ["is never an older one, even if it is its host's newest", "t-2", [older, superseded("t-2", { madeAt: 2 })], [host("a", "t-2", "t-1")],                        undefined, undefined],
    ["is the one with the newer engine, whenever it was built", "t-0", [minor, older],                          [host("a", "t-3", "t-1")],                        "t-1",     undefined],
    ["is no older engine that was built later",           "t-1", [older, minor],                               [host("a", "t-1", "t-3")],                        undefined, undefined],
    ["is the one seen later of two that do not differ",   "t-0", [image("t-5", { createdAt: 5 }), image("t-6", { createdAt: 6 })], [host("a", "t-5", "t-6")],    "t-6",     undefined],
    ["is from a silent host's last report",                  "t-1", [older, newer],                               [silent(host("a", "t-1", "t-2"))],                "t-2",     undefined],
    ["is none without a report of its host",                 "t-1", [newer],                                      [host("a")],                                      undefined, ["a"]],
    ["is none while it is on no host",                    "t-1", [newer],                                      [],                                               undefined, undefined],
    ["is none of another version",                        "t-1", [{ ...newer, status: { newestOf: ["postgresql 18"] } }], [host("a", "t-1", "t-2")],             undefined, undefined],
  ])("%s", (_name, current, images, hosts, offered, missing) => {
    const offer = imageOffer(line, current, images, hosts);
    expect(offer.image?.metadata.id).toBe(offered);
    expect(offer.awaited?.missingOn).toEqual(missing);
    // In any order.
    expect(imageOffer(line, current, [...images].reverse(), [...hosts].reverse()).image?.metadata.id).toBe(offered);
  });

  it("is available since the last of its hosts has it", () => {
    const since = (one: HostObject, at: number): HostObject => ({
      ...one,
      status: { ...one.status, imageSince: { "t-2": at } },
    });
    const hosts = [since(host("a", "t-1", "t-2"), 50), since(host("b", "t-1", "t-2"), 70)];
    const images = [older, { ...newer, metadata: { ...newer.metadata, createdAt: 40 } }];
    expect(imageOffer(line, "t-1", images, hosts).since).toBe(70);
    expect(imageOffer(line, "t-1", images, [host("a", "t-1", "t-2")]).since).toBe(40);
  });
});

test("hosts with the engine but without the newest image lack it", () => {
  const destroyed = readyHost("d", { destroyedAt: 1 }, {}, { images: host("d", "t-1").status.images });
  const otherEngine = readyHost("v", {}, {}, { images: [{ ...line, version: "18", available: true, image: "s-1" }] });
  const hosts = [host("b", "t-1"), host("a", "t-2"), host("c", "t-0"), otherEngine, destroyed, host("n")];
  expect(missingOn(newer, [older, newer], hosts)).toEqual(["b", "c"]);
  expect(missingOn(older, [older, newer], hosts)).toEqual([]);
});

test("only hosts of virtual machines lack the newest kernel", () => {
  const kernel = (id: string, madeAt: number): NodeImageObject => ({
    ...image(id, { madeAt }),
    spec: { engines: [{ ...guestKernelSeries, engineVersion: "6.12.48" }], madeAt, urgent: null },
    status: { newestOf: [seriesNameOf(guestKernelSeries.engine, guestKernelSeries.version)] },
  });
  const kernels = [kernel("guest-1", 1), kernel("guest-2", 2)];
  const ofGuests = (id: string, guest: string) =>
    readyHost(id, {}, { imageIds: [guest] }, { images: [{ ...guestKernelSeries, available: true, image: guest }] });
  const hosts = [host("containers", "t-1"), ofGuests("b", "guest-1"), ofGuests("a", "guest-2")];
  expect(missingOn(kernel("guest-2", 2), kernels, hosts)).toEqual(["b"]);
});
