import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { chooseContainment, type ComponentRole } from "./containment.ts";

const users = { agent: 65_532, engine: 65_533 };
const isRoot = process.getuid?.() === 0;

/** User and capability sets of a component, as the kernel reports them. */
function statusOf(role: ComponentRole, allowNamespaces: boolean): Readonly<Record<string, string>> {
  const [file = "", ...args] = chooseContainment(users, { allowNamespaces }).wrap(["cat", "/proc/self/status"], role);
  const { stdout } = spawnSync(file, args, { encoding: "utf8" });
  return Object.fromEntries([...stdout.matchAll(/^(Uid|Cap\w+):\s+(\w+)/gm)].map(([, name, value]) => [name, value]));
}

const nothing = "0000000000000000";
/** CAP_NET_BIND_SERVICE, number 10 of capabilities(7). */
const lowPorts = "0000000000000400";

test.runIf(isRoot).each([
  ["front", String(users.engine), lowPorts],
  ["engine", String(users.engine), nothing],
  ["agent", String(users.agent), nothing],
] as const)(
  "a component with the role of the %s has the user %s and the capabilities %s",
  (role, user, capabilities) => {
    for (const allowNamespaces of [true, false])
      expect(statusOf(role, allowNamespaces)).toEqual({
        Uid: user,
        CapInh: capabilities,
        CapPrm: capabilities,
        CapEff: capabilities,
        CapBnd: capabilities,
        CapAmb: capabilities,
      });
  },
);
