import { expect, it } from "vitest";
import { machineObject } from "../../../../test/support/machines/machine-object.ts";
import { readyHost } from "../../../../test/support/platform/ready-host.ts";
import { hostRemovalRefusal } from "./host-removal.ts";

const of = (id: string | null) => machineObject({ owner: id === null ? null : { kind: "managed-service", id } });
const ready = readyHost("h");
const silent = readyHost("h", {}, {}, { state: "unreachable" });

// biome-ignore format: a table
it.each<[string, Parameters<typeof hostRemovalRefusal>, RegExp | undefined]>([
  ["is removed when it has no machines",      [ready, [], false, []],                            undefined],
  ["is removed when it never joined",         [readyHost("h", {}, {}, { state: "joining" }), [], false, []], undefined],
  ["stays while services are on it",          [ready, [of("s"), of(null)], false, []],           /^2 machines are on host h\. Delete the services s first\. The 1 of the warm pool are removed when it is cordoned\.$/],
  ["stays while it is unreachable as well",   [silent, [of("s")], false, []],                    /^1 machines are on host h\./],
  ["stays when it is the controllers' own",   [readyHost("h", { address: "" }), [], true, []],   /the controllers' own/],
  ["is not destroyed while it answers",       [ready, [of("s")], true, ["s"]],                   /answers, so it is not destroyed: drain it/],
  ["is not given up with a service unnamed",  [silent, [of("a"), of("b"), of("b")], true, ["a"]], /must name every service whose data is lost, also b$/],
  ["is not given up with another one's name", [silent, [of("a")], true, ["a", "x"]],             /^x is not on host h$/],
  ["is given up with all named",              [silent, [of("a"), of("b"), of(null)], true, ["b", "a"]], undefined],
  ["accepts no lost services unless destroyed", [ready, [], false, ["a"]],                         /is for destroyed hosts only/],
])("a host %s", (_, args, detail) => {
  const refusal = hostRemovalRefusal(...args);
  if (detail === undefined) expect(refusal).toBeUndefined();
  else expect(refusal?.detail).toMatch(detail);
});
