import { describe, expect, it, test } from "vitest";
import { readyHost } from "../../../../test/support/platform/ready-host.ts";
import { guestLine } from "@holdfast/compute/compute-provider.ts";
import type { HostObject } from "#fleet/host/host.ts";
import { imageOffer, missingOn } from "./image-offer.ts";
import { lineOf, type NodeImageObject } from "./node-image.ts";

const line = { engine: "postgresql", version: "17" };

interface Told {
  readonly engineVersion?: string;
  readonly madeAt?: number;
  readonly createdAt?: number;
  /** False for one that machines run from and that is the newest nowhere any more. */
  readonly newest?: boolean;
}

function image(id: string, { engineVersion = "17.10", madeAt, createdAt = 0, newest = true }: Told = {}) {
  const metadata = { id, name: id, organizationId: "", generation: 1, createdAt, updatedAt: 0 };
  const engines = [{ ...line, engineVersion }];
  const status = { newestOf: newest ? [lineOf(line.engine, line.version)] : [] };
  return { metadata, spec: { engines, ...(madeAt !== undefined && { madeAt }), urgent: null }, status };
}

/** The last of its images is its newest. */
function host(id: string, ...imageIds: string[]): HostObject {
  const newest = imageIds.at(-1);
  const images = [{ ...line, available: true, ...(newest !== undefined && { image: newest }) }];
  return readyHost(id, {}, { imageIds }, { images });
}

const older = image("t-1", { madeAt: 1 });
const newer = image("t-2", { madeAt: 2 });
const minor = image("t-3", { engineVersion: "17.9", madeAt: 9 });
const gone = (id: string, told: Told) => image(id, { ...told, newest: false });
const silent = (one: HostObject): HostObject => ({ ...one, status: { ...one.status, state: "unreachable" } });

describe("the image that is offered to a service", () => {
  // biome-ignore format: a table, aligned so that it reads as one
  it.each<[string, string, NodeImageObject[], HostObject[], string | undefined, string[] | undefined]>([
    // what                                              runs from  register                                  its machines' hosts                               offered    who keeps it from a newer one
    ["is the newest of its host",                         "t-1", [gone("t-1", { madeAt: 1 }), newer],          [host("a", "t-1", "t-2")],                        "t-2",     undefined],
    ["is none when it runs from that",                    "t-2", [newer],                                      [host("a", "t-1", "t-2")],                        undefined, undefined],
    ["is none that only another host has",                "t-1", [older, newer],                               [host("a", "t-1")],                               undefined, ["a"]],
    ["is what its own host has of two that are newer",    "t-0", [gone("t-0", { madeAt: 0 }), older, newer],   [host("a", "t-0", "t-1")],                        "t-1",     ["a"]],
    ["is the newest that all of its hosts have",          "t-0", [gone("t-0", { madeAt: 0 }), older, newer],   [host("a", "t-0", "t-1", "t-2"), host("b", "t-0", "t-1")], "t-1", ["b"]],
    ["is none when its hosts have no newer one in common", "t-0", [gone("t-0", { madeAt: 0 }), older, newer],  [host("a", "t-0", "t-1"), host("b", "t-0", "t-2")], undefined, ["a"]],
    ["is also one that was brought there from elsewhere",  "t-1", [older, newer],                              [host("a", "t-2", "t-1")],                        "t-2",     undefined],
    ["is never an older one, though its host calls it the newest", "t-2", [older, gone("t-2", { madeAt: 2 })], [host("a", "t-2", "t-1")],                        undefined, undefined],
    ["is the one with the newer engine, whenever it was made", "t-0", [minor, older],                          [host("a", "t-3", "t-1")],                        "t-1",     undefined],
    ["is no older engine that was made later",            "t-1", [older, minor],                               [host("a", "t-1", "t-3")],                        undefined, undefined],
    ["is the one seen later of two that do not differ",   "t-0", [image("t-5", { createdAt: 5 }), image("t-6", { createdAt: 6 })], [host("a", "t-5", "t-6")],    "t-6",     undefined],
    ["is by what a silent host told last",                "t-1", [older, newer],                               [silent(host("a", "t-1", "t-2"))],                "t-2",     undefined],
    ["is none while its host has told of none",           "t-1", [newer],                                      [host("a")],                                      undefined, ["a"]],
    ["is none while it is on no host",                    "t-1", [newer],                                      [],                                               undefined, undefined],
    ["is none of another version",                        "t-1", [{ ...newer, status: { newestOf: ["postgresql 18"] } }], [host("a", "t-1", "t-2")],             undefined, undefined],
  ])("%s", (_name, current, images, hosts, offered, missing) => {
    const offer = imageOffer(line, current, images, hosts);
    expect(offer.image?.metadata.id).toBe(offered);
    expect(offer.awaited?.missingOn).toEqual(missing);
    // In whatever order they are known.
    expect(imageOffer(line, current, [...images].reverse(), [...hosts].reverse()).image?.metadata.id).toBe(offered);
  });

  it("is there since the last of its hosts has it", () => {
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

test("the newest image of all is missed by those that have its engine without it", () => {
  const destroyed = readyHost("d", { destroyedAt: 1 }, {}, { images: host("d", "t-1").status.images });
  const otherEngine = readyHost("v", {}, {}, { images: [{ ...line, version: "18", available: true, image: "s-1" }] });
  const hosts = [host("b", "t-1"), host("a", "t-2"), host("c", "t-0"), otherEngine, destroyed, host("n")];
  expect(missingOn(newer, [older, newer], hosts)).toEqual(["b", "c"]);
  expect(missingOn(older, [older, newer], hosts)).toEqual([]);
});

test("the newest kernel is missed by hosts of virtual machines, and by no other", () => {
  const kernel = (id: string, madeAt: number): NodeImageObject => ({
    ...image(id, { madeAt }),
    spec: { engines: [{ ...guestLine, engineVersion: "6.12.48" }], madeAt, urgent: null },
    status: { newestOf: [lineOf(guestLine.engine, guestLine.version)] },
  });
  const kernels = [kernel("guest-1", 1), kernel("guest-2", 2)];
  const ofGuests = (id: string, guest: string) =>
    readyHost(id, {}, { imageIds: [guest] }, { images: [{ ...guestLine, available: true, image: guest }] });
  const hosts = [host("containers", "t-1"), ofGuests("b", "guest-1"), ofGuests("a", "guest-2")];
  expect(missingOn(kernel("guest-2", 2), kernels, hosts)).toEqual(["b"]);
});
