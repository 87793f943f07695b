import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { emptyProvider } from "@holdfast/testing/machines/empty-provider.ts";
import { testMachineSpec } from "@holdfast/testing/machines/machine-spec.ts";
import { startTestMachines, type TestMachines } from "@holdfast/testing/machines/process-machines.ts";
import { ComputeFailure, HostUnreachable } from "../compute-failure.ts";
import type { ComputeProvider } from "../compute-provider.ts";
import { detectAbilities } from "../local/host-abilities.ts";
import { createHostsProvider, type HostsProviderDeps } from "./hosts-provider.ts";

const signal = new AbortController().signal;
const { isolation, reason } = await detectAbilities();

/** A host that does not respond: calls fail, or never end. */
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

  it("creates a machine on the host of its placement, and finds it there", async () => {
    const [onA, onB] = [await make("a"), await make("b")];
    expect(await a.provider.get(onA, signal)).toBeDefined();
    expect(await a.provider.get(onB, signal)).toBeUndefined();
    expect(await provider.get(onB, signal)).toMatchObject({ address: expect.stringMatching(/^127\.98\./) });
    const { machines, unresponsive } = await provider.survey(signal);
    expect(machines.map(({ hostId, facts }) => [facts.id, hostId])).toEqual(
      expect.arrayContaining([
        [onA, "a"],
        [onB, "b"],
      ]),
    );
    expect(unresponsive.size).toBe(0);
    await provider.destroy(onB, signal);
    expect(await b.provider.get(onB, signal)).toBeUndefined();
    expect(await provider.get(onA, signal)).toBeDefined();
  });

  it("counts a host that refuses as silent, never as empty", async () => {
    const onA = await make("a");
    hosts.set("c", silentHost("refuses"));
    const { machines, unresponsive } = await provider.survey(signal);
    expect(machines.map(({ facts }) => facts.id)).toContain(onA);
    expect([...unresponsive.keys()]).toEqual(["c"]);
  });

  it("counts a hanging host as silent, and does not wait for it", async () => {
    const listed = await make("a").then(() => a.provider.list(signal));
    hosts.clear();
    hosts.set("a", { ...emptyProvider, list: async () => listed }).set("c", silentHost("hangs"));
    const impatient = createHostsProvider({ ...deps, surveyTimeoutMs: 200 });
    const { machines, unresponsive } = await impatient.survey(signal);
    expect(machines.map(({ facts }) => facts.id)).toEqual(listed.map(({ id }) => id));
    expect([...unresponsive.keys()]).toEqual(["c"]);
  });

  it("throws where only a host without a response has the result", async () => {
    const onA = await make("a");
    hosts.set("c", silentHost("refuses"));
    await expect(provider.list(signal)).rejects.toThrow(HostUnreachable);
    // No object names its host, so it may be on the silent one.
    await expect(provider.get("unknown", signal)).rejects.toThrow(HostUnreachable);
    await expect(provider.destroy("unknown", signal)).rejects.toThrow(HostUnreachable);
    expect(await provider.find(onA, signal)).toMatchObject({ hostId: "a" });
    expect((await provider.images(signal)).length).toBeGreaterThan(0);
  });

  it("throws HostUnreachable for an unregistered host, and finds no unplaced machine", async () => {
    placed.set("far", "gone").set("new", null);
    await expect(provider.get("far", signal)).rejects.toThrow(HostUnreachable);
    await expect(provider.destroy("far", signal)).rejects.toThrow(HostUnreachable);
    expect(await provider.get("new", signal)).toBeUndefined();
    await provider.destroy("new", signal);
    await expect(provider.resize("new", { vcpu: 1, memoryBytes: 1 }, signal)).rejects.toThrow(ComputeFailure);
  });

  it("watches machines on hosts that are added later", async () => {
    hosts.delete("b");
    const notified: string[] = [];
    const watch = provider.watch((id) => notified.push(id));
    hosts.set("b", b.provider);
    for (const notify of changed) notify();
    const id = await make("b");
    await provider.start(id, { installationId: "i", controllers: [], caFingerprint: "", token: "" }, signal);
    await expect.poll(() => notified).toContain(id);
    watch.close();
    expect(changed.size).toBe(0);
  });
});
