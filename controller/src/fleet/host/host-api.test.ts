import { expect, it } from "vitest";
import { machineObject } from "@holdfast/testing/machines/machine-object.ts";
import { testOwners } from "@holdfast/testing/machines/test-owners.ts";
import { readyHost } from "@holdfast/testing/platform/ready-host.ts";
import type { MachineObject } from "../machine/machine.ts";
import { type HostRemoval, hostRemovalRefusal } from "./host-api.ts";
import type { HostObject } from "./host.ts";

const of = (id: string | null, kind = "managed-service") => machineObject({ owner: id === null ? null : { kind, id } });
const ready = readyHost("h");
const silent = readyHost("h", {}, {}, { state: "unreachable" });
const stays = { destroyed: false, lostOwners: [], lostIds: [] };
/** The removal of a destroyed host, with consent to the loss of these owners: `kind/id`, or only the id. */
function destroyed(...lost: string[]): HostRemoval {
  const [named, ids] = [lost.filter((each) => each.includes("/")), lost.filter((each) => !each.includes("/"))];
  const lostOwners = named.map((each) => ({ kind: each.split("/")[0] ?? "", id: each.split("/")[1] ?? "" }));
  return { destroyed: true, lostOwners, lostIds: ids };
}

// biome-ignore format: a table
it.each<[string, [HostObject, MachineObject[], HostRemoval], RegExp | undefined]>([
  ["is removed when it has no machines",      [ready, [], stays],                                undefined],
  ["is removed when it never joined",         [readyHost("h", {}, {}, { state: "joining" }), [], stays], undefined],
  ["stays while services are on it",          [ready, [of("s"), of(null)], stays],               /^2 machines are on host h\. Delete the services s first\. Machines of the warm pool \(1\) are removed when the host is cordoned\.$/],
  ["stays while owners of any kind are on it", [ready, [of("d", "drill"), of("s"), of("c", "cache")], stays], /^3 machines are on host h\. Empty the caches c first\. Wait for the restore drills d first\. Delete the services s first\.$/],
  ["stays while it is unreachable as well",   [silent, [of("s")], stays],                        /^1 machines are on host h\./],
  ["stays when it is the controllers' own",   [readyHost("h", { address: "" }), [], destroyed()], /the controllers' own/],
  ["is not destroyed while it responds",      [ready, [of("s")], destroyed("s")],                /responds, so it is not destroyed: drain it/],
  ["is not given up with an owner unnamed",   [silent, [of("a"), of("b"), of("b")], destroyed("a")], /must name every owner whose data is lost, also service b \(managed-service\/b\)$/],
  ["is not given up with another one's id",   [silent, [of("a")], destroyed("a", "x")],          /^x is not on host h$/],
  ["is not given up with another kind's name", [silent, [of("a")], destroyed("cache/a")],        /also service a \(managed-service\/a\)$/],
  ["is not given up with another one's name", [silent, [of("a")], destroyed("a", "cache/a")],    /^cache\/a is not on host h$/],
  ["is given up with all ids",                [silent, [of("a"), of("b"), of(null)], destroyed("b", "a")], undefined],
  ["is given up with all names",              [silent, [of("a"), of("b")], destroyed("managed-service/b", "a")], undefined],
  ["is given up without naming what is replaceable", [silent, [of("c", "cache"), of("d", "drill")], destroyed()], undefined],
  ["is not given up without an owner that no system handles", [silent, [of("x", "alien")], destroyed()], /also alien x \(alien\/x\)$/],
  ["accepts no lost ids unless destroyed",    [ready, [], { ...destroyed("a"), destroyed: false }], /is for destroyed hosts only/],
  ["accepts no lost owners unless destroyed", [ready, [], { ...destroyed("cache/a"), destroyed: false }], /is for destroyed hosts only/],
])("a host %s", (_, args, detail) => {
  const refusal = hostRemovalRefusal(...args, testOwners);
  if (detail === undefined) expect(refusal).toBeUndefined();
  else expect(refusal?.detail).toMatch(detail);
});
