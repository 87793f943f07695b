import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { emptyProvider } from "../../../test/support/machines/empty-provider.ts";
import { testMachineSpec } from "../../../test/support/machines/machine-spec.ts";
import { startTestMachines, type TestMachines } from "../../../test/support/machines/process-machines.ts";
import { ComputeFailure, HostUnreachable } from "../compute-failure.ts";
import type { ComputeProvider } from "../compute-provider.ts";
import { detectAbilities } from "../local/host-abilities.ts";
import { createHostsProvider, type HostsProviderDeps } from "./hosts-provider.ts";

const signal = new AbortController().signal;
const { isolation, reason } = await detectAbilities();

/** A host that does not answer: what it is asked for fails, or never ends. */
function silentHost(how: "refuses" | "hangs"): ComputeProvider {
  const answer = () =>
    how === "hangs" ? new Promise<never>(() => {}) : Promise.reject(new HostUnreachable("c", "connection refused"));
  const watch = () => ({ close() {} });
  return new Proxy({} as ComputeProvider, { get: (_, name) => (name === "watch" ? watch : answer) });
}

describe.skipIf(isolation === "none")(`hosts${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  let a: TestMachines;
  let b: TestMachines;
  const placed = new Map<string, string | null>();
  const hosts = new Map<string, ComputeProvider>();
  const changed = new Set<() => void>();
  const deps: HostsProviderDeps = {
    hosts: () => hosts,
    onHosts: (onChange) => {
      changed.add(onChange);
      return { close: () => changed.delete(onChange) };
    },
    hostOf: (id) => placed.get(id),
  };
  const provider = createHostsProvider(deps);

  beforeAll(async () => {
    [a, b] = await Promise.all([startTestMachines(), startTestMachines({ loopbackBlock: "127.98" })]);
  });
  afterAll(async () => {
    await Promise.all([a?.close(), b?.close()]);
  });
  beforeEach(() => {
    hosts.clear();
    placed.clear();
    hosts.set("a", a.provider).set("b", b.provider);
  });

  async function make(hostId: string): Promise<string> {
    const spec = testMachineSpec({ hostId });
    placed.set(spec.id, hostId);
    await provider.create(spec, signal);
    return spec.id;
  }

  it("makes a machine where it was placed, and finds it there", async () => {
    const [onA, onB] = [await make("a"), await make("b")];
    expect(await a.provider.get(onA, signal)).toBeDefined();
    expect(await a.provider.get(onB, signal)).toBeUndefined();
    expect(await provider.get(onB, signal)).toMatchObject({ address: expect.stringMatching(/^127\.98\./) });
    const { machines, silent } = await provider.survey(signal);
    expect(machines.map(({ hostId, facts }) => [facts.id, hostId])).toEqual(
      expect.arrayContaining([
        [onA, "a"],
        [onB, "b"],
      ]),
    );
    expect(silent.size).toBe(0);
    await provider.destroy(onB, signal);
    expect(await b.provider.get(onB, signal)).toBeUndefined();
    expect(await provider.get(onA, signal)).toBeDefined();
  });

  it("takes a host that refuses for silent, never for empty", async () => {
    const onA = await make("a");
    hosts.set("c", silentHost("refuses"));
    const { machines, silent } = await provider.survey(signal);
    expect(machines.map(({ facts }) => facts.id)).toContain(onA);
    expect([...silent.keys()]).toEqual(["c"]);
  });

  it("takes a host that hangs for silent, and waits for no other", async () => {
    const listed = await make("a").then(() => a.provider.list(signal));
    hosts.clear();
    hosts.set("a", { ...emptyProvider, list: async () => listed }).set("c", silentHost("hangs"));
    const impatient = createHostsProvider({ ...deps, surveyWithinMs: 200 });
    const { machines, silent } = await impatient.survey(signal);
    expect(machines.map(({ facts }) => facts.id)).toEqual(listed.map(({ id }) => id));
    expect([...silent.keys()]).toEqual(["c"]);
  });

  it("tells nothing that only a silent host could know", async () => {
    const onA = await make("a");
    hosts.set("c", silentHost("refuses"));
    await expect(provider.list(signal)).rejects.toThrow(HostUnreachable);
    // Nobody knows of this one, so it may well be on the host that is silent.
    await expect(provider.get("unknown", signal)).rejects.toThrow(HostUnreachable);
    await expect(provider.destroy("unknown", signal)).rejects.toThrow(HostUnreachable);
    expect(await provider.find(onA, signal)).toMatchObject({ hostId: "a" });
    expect((await provider.images(signal)).length).toBeGreaterThan(0);
  });

  it("takes a machine of a host that it does not know for unreachable, and one that was not placed for nowhere", async () => {
    placed.set("far", "gone").set("new", null);
    await expect(provider.get("far", signal)).rejects.toThrow(HostUnreachable);
    await expect(provider.destroy("far", signal)).rejects.toThrow(HostUnreachable);
    expect(await provider.get("new", signal)).toBeUndefined();
    await provider.destroy("new", signal);
    await expect(provider.resize("new", { vcpu: 1, memoryBytes: 1 }, signal)).rejects.toThrow(ComputeFailure);
  });

  it("hears of machines on hosts that come later", async () => {
    hosts.delete("b");
    const heard: string[] = [];
    const watch = provider.watch((id) => heard.push(id));
    hosts.set("b", b.provider);
    for (const tell of changed) tell();
    const id = await make("b");
    await provider.start(id, { installationId: "i", controllers: [], caFingerprint: "", token: "" }, signal);
    await expect.poll(() => heard).toContain(id);
    watch.close();
    expect(changed.size).toBe(0);
  });
});
