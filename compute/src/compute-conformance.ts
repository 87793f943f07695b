import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testMachineSpec } from "@holdfast/testing/machines/machine-spec.ts";
import type { Enrollment, InstanceKind, MachineSpec } from "./compute-provider.ts";
import type { ConformanceSubject } from "./conformance-subject.ts";
import { addressNetworkOf, overlap } from "./local/address-network.ts";
import { snapshotConformance } from "./snapshot-conformance.ts";

const gib = 1024 ** 3;
const signal = new AbortController().signal;
const enrollment: Enrollment = {
  installationId: "test",
  controllers: ["127.0.0.1:1"],
  caFingerprint: "00",
  token: "first",
};

/** The conformance suite of compute providers, run against a real one. `skip`: reason why the suite cannot run here. */
export function computeConformance(
  name: string,
  open: () => Promise<ConformanceSubject>,
  skip?: string,
  kind: InstanceKind = "container",
): void {
  describe.skipIf(skip !== undefined)(
    `compute provider ${name}${skip === undefined ? "" : ` (skipped: ${skip})`}`,
    () => {
      let subject: ConformanceSubject;
      const machineSpec = (overrides: Partial<MachineSpec> = {}) => testMachineSpec({ kind, ...overrides });
      beforeAll(async () => {
        subject = await open();
      });
      afterAll(async () => {
        const { provider } = subject;
        for (const { id } of await provider.list(signal)) await provider.destroy(id, signal);
        const remaining = await subject.leftovers();
        await subject.close();
        expect(remaining).toEqual([]);
      });

      async function created(overrides: Partial<MachineSpec> = {}): Promise<string> {
        const facts = await subject.provider.create(machineSpec(overrides), signal);
        return facts.id;
      }

      async function started(overrides: Partial<MachineSpec> = {}): Promise<string> {
        const id = await created(overrides);
        await subject.provider.start(id, enrollment, signal);
        return id;
      }

      const sees = async (id: string, path: string) => existsSync(await subject.seen(id, path));

      const stateOf = async (id: string) => (await subject.provider.get(id, signal))?.state;

      it("creates a machine once for repeated calls", async () => {
        const spec = machineSpec();
        const first = await subject.provider.create(spec, signal);
        const again = await subject.second.create(spec, signal);
        expect(again).toEqual(first);
        expect(first).toMatchObject({ state: "stopped", hasData: false, starts: 0, diskBytes: spec.diskBytes });
        expect((await subject.provider.list(signal)).filter(({ id }) => id === spec.id)).toHaveLength(1);
      });

      it("assigns different addresses to machines that are created concurrently", async () => {
        const specs = Array.from({ length: 6 }, () => machineSpec());
        const both = [subject.provider, subject.second];
        const facts = await Promise.all(specs.map(async (spec, index) => both[index % 2]?.create(spec, signal)));
        expect(new Set(facts.map((each) => each?.address)).size).toBe(specs.length);
      });

      it("assigns each a public address of the host's block, which a destruction frees", async () => {
        const { provider, second, publicBlock } = subject;
        const block = addressNetworkOf(publicBlock);
        const specs = Array.from({ length: 4 }, () => machineSpec());
        const facts = await Promise.all(
          specs.map((spec, index) => (index % 2 === 0 ? provider : second).create(spec, signal)),
        );
        expect(new Set(facts.map(({ publicAddress }) => publicAddress)).size).toBe(specs.length);
        for (const { address, publicAddress } of facts) {
          expect(overlap(block, addressNetworkOf(`${publicAddress}/32`))).toBe(true);
          expect(address).not.toBe(publicAddress);
        }
        for (const { id } of facts) await provider.destroy(id, signal);
        const after = await provider.create(machineSpec(), signal);
        expect(facts.map(({ publicAddress }) => publicAddress)).toContain(after.publicAddress);
      });

      it("creates one machine for two concurrent creations of one id", async () => {
        const spec = machineSpec();
        const [a, b] = await Promise.all([subject.provider.create(spec, signal), subject.second.create(spec, signal)]);
        expect(a).toEqual(b);
      });

      it("starts a machine once for repeated and concurrent calls", async () => {
        const id = await created();
        await Promise.all([
          subject.provider.start(id, enrollment, signal),
          subject.second.start(id, enrollment, signal),
        ]);
        await subject.provider.start(id, enrollment, signal);
        expect(await subject.provider.get(id, signal)).toMatchObject({ state: "running", starts: 1, hasData: true });
      });

      it("writes the newest enrollment for the machine only, also when it runs already", async () => {
        const id = await started();
        await subject.provider.start(id, { ...enrollment, token: "second" }, signal);
        const { content, mode } = await subject.enrollment(id);
        expect(content).toMatchObject({ machine_id: id, token: "second", controllers: ["127.0.0.1:1"] });
        expect(mode & 0o777).toBe(0o600);
      });

      it("stops a machine with all its processes, and stops it again without harm", async () => {
        const id = await started();
        await expect.poll(async () => (await subject.processesOf(id)).length).toBeGreaterThan(1);
        const processes = await subject.processesOf(id);
        await subject.provider.stop(id, 5_000, signal);
        expect(subject.alive(processes)).toEqual([]);
        expect(await stateOf(id)).toBe("stopped");
        await subject.provider.stop(id, 5_000, signal);
      });

      it("starts a stopped machine on the same address and counts the start", async () => {
        const id = await started();
        const before = await subject.provider.get(id, signal);
        await subject.provider.stop(id, 5_000, signal);
        await subject.provider.start(id, enrollment, signal);
        expect(await subject.provider.get(id, signal)).toEqual({ ...before, starts: 2 });
      });

      it("fences: when it resolves, no process of the machine remains", async () => {
        const id = await started();
        const processes = await subject.processesOf(id);
        await subject.second.fence(id, signal);
        expect(subject.alive(processes)).toEqual([]);
        expect(await stateOf(id)).toBe("stopped");
        await expect(subject.second.fence("elsewhere", signal)).rejects.toThrow("elsewhere");
      });

      it("reports a killed machine as stopped, and notifies every watcher", async () => {
        const id = await started();
        const notified: { readonly changed: string; readonly watcher: number }[] = [];
        const watches = [subject.provider, subject.second].map((provider, watcher) =>
          provider.watch((changed) => notified.push({ changed, watcher })),
        );
        const watchersOf = (changed: string) =>
          new Set(notified.flatMap((each) => (each.changed === changed ? each.watcher : []))).size;
        // Notifications of the start come before those of a later start.
        const later = await started();
        await expect.poll(() => watchersOf(later), { interval: 5 }).toBe(2);
        notified.length = 0;
        const processes = await subject.processesOf(id);
        await subject.crash(id);
        await expect.poll(() => watchersOf(id), { interval: 5 }).toBe(2);
        for (const watch of watches) watch.close();
        expect(await stateOf(id)).toBe("stopped");
        if (!subject.contained) await subject.provider.fence(id, signal);
        expect(subject.alive(processes)).toEqual([]);
      });

      it("notifies of a start by another controller", async () => {
        const id = await created();
        const notified = new Set<string>();
        const watch = subject.provider.watch((changed) => notified.add(changed));
        await subject.second.start(id, enrollment, signal);
        await expect.poll(() => notified.has(id), { interval: 5 }).toBe(true);
        watch.close();
      });

      it("starts a machine after a reboot of the host, also when its process id is reused", async () => {
        const id = await started();
        await subject.reboot(id);
        expect(await stateOf(id)).toBe("stopped");
        await subject.provider.start(id, enrollment, signal);
        expect(await subject.provider.get(id, signal)).toMatchObject({ state: "running", starts: 2 });
      });

      it("enforces the CPU and memory of a machine's plan, and of a new plan while it runs", async () => {
        const id = await started();
        const { plan } = machineSpec();
        const limits = await subject.limits(id);
        if (limits === undefined) return;
        expect(limits).toEqual(plan);
        const larger = { vcpu: 2, memoryBytes: 3 * gib };
        await subject.provider.resize(id, larger, signal);
        expect(await subject.limits(id)).toEqual(larger);
        await subject.provider.stop(id, 5_000, signal);
        await subject.provider.start(id, enrollment, signal);
        expect(await subject.limits(id)).toEqual(larger);
      });

      it("reports the plan of a machine's creation, and the one of a resize", async () => {
        const id = await created({ plan: { vcpu: 1, memoryBytes: gib } });
        const planOf = async () => (await subject.provider.get(id, signal))?.plan;
        expect(await planOf()).toMatchObject({ vcpu: 1, memoryBytes: gib });
        await subject.provider.resize(id, { vcpu: 2, memoryBytes: 2 * gib }, signal);
        expect(await planOf()).toMatchObject({ vcpu: 2, memoryBytes: 2 * gib });
      });

      it("enforces the plan's size of a root, lets it grow with another plan, and never shrink", async () => {
        const { provider } = subject;
        const plan = { vcpu: 1, memoryBytes: gib, rootBytes: 2 * gib };
        const id = await started({ plan });
        if ((await subject.rootCanAllocate(id, 1)) === undefined) return;
        expect((await provider.get(id, signal))?.plan).toEqual(plan);
        // The image counts toward the root's size.
        expect(await subject.rootCanAllocate(id, 2 * gib)).toBe(false);
        expect(await subject.rootCanAllocate(id, gib)).toBe(true);
        await provider.resize(id, { ...plan, rootBytes: 3 * gib }, signal);
        expect(await subject.rootCanAllocate(id, 2 * gib)).toBe(true);
        await provider.resize(id, plan, signal);
        expect((await provider.get(id, signal))?.plan).toEqual({ ...plan, rootBytes: 3 * gib });
        // The root of another image has the same size.
        await provider.stop(id, 5_000, signal);
        await provider.replaceImage(id, await subject.otherImage(), signal);
        await provider.start(id, enrollment, signal);
        expect(await subject.rootCanAllocate(id, 2 * gib)).toBe(true);
        expect(await subject.rootCanAllocate(id, 3 * gib)).toBe(false);
      });

      it("creates a machine from the newest image, or from the chosen one", async () => {
        const { provider } = subject;
        const newest = (await provider.images(signal)).find(({ version }) => version === "17")?.image;
        if (newest === undefined) return;
        const other = await subject.otherImage();
        const imageOf = async (id: string) => (await provider.get(id, signal))?.image;
        expect(await imageOf(await created())).toBe(newest);
        expect(await imageOf(await created({ image: other }))).toBe(other);
        await expect(created({ image: "trixie-00000000000000ff" })).rejects.toThrow(
          "trixie-00000000000000ff is not on this host",
        );
      });

      it("replaces the image under the data disk at the next start, for repeated calls", async () => {
        const { provider } = subject;
        const id = await started();
        const before = await provider.get(id, signal);
        if (before === undefined || before.image === "") return;
        const other = await subject.otherImage();
        await provider.replaceImage(id, other, signal);
        await subject.second.replaceImage(id, other, signal);
        expect(await sees(id, "/etc/other-image")).toBe(false);
        await provider.stop(id, 5_000, signal);
        await provider.start(id, enrollment, signal);
        expect(await provider.get(id, signal)).toEqual({ ...before, image: other, starts: 2 });
        expect(await sees(id, "/etc/other-image")).toBe(true);
        await expect(provider.replaceImage(id, "trixie-00000000000000ff", signal)).rejects.toThrow(
          "trixie-00000000000000ff is not on this host",
        );
        // The last choice counts, also without a start in between.
        await provider.stop(id, 5_000, signal);
        await provider.replaceImage(id, before.image, signal);
        await provider.start(id, enrollment, signal);
        expect(await sees(id, "/etc/other-image")).toBe(false);
      });

      it("grows the data disk of a running machine, and of a stopped one at its next start", async () => {
        const id = await started();
        await subject.provider.growDisk(id, 2 * gib, signal);
        const online = await subject.dataBytes(id);
        if (online !== undefined) expect(online / gib).toBeCloseTo(2, 0);
        await subject.provider.stop(id, 5_000, signal);
        await subject.provider.growDisk(id, 3 * gib, signal);
        await subject.provider.start(id, enrollment, signal);
        const offline = await subject.dataBytes(id);
        if (offline !== undefined) expect(offline / gib).toBeCloseTo(3, 0);
        expect((await subject.provider.get(id, signal))?.diskBytes).toBe(3 * gib);
      });

      it("refuses to shrink a data disk", async () => {
        const id = await created({ diskBytes: 2 * gib });
        await expect(subject.provider.growDisk(id, gib, signal)).rejects.toThrow("can only grow");
      });

      snapshotConformance({ subject: () => subject, created, started, enrollment });

      it("destroys a running machine with its data, and again without harm", async () => {
        const id = await started();
        const processes = await subject.processesOf(id);
        await subject.provider.destroy(id, signal);
        expect(subject.alive(processes)).toEqual([]);
        expect(await subject.provider.get(id, signal)).toBeUndefined();
        await subject.second.destroy(id, signal);
      });

      it("refuses a disk that the host does not have, with the figure", async () => {
        const admission = await subject.provider.admit(machineSpec({ diskBytes: 1e6 * gib }), signal);
        expect(admission).toMatchObject({ admitted: false, reason: expect.stringMatching(/\d GiB/) });
        expect(await subject.provider.admit(machineSpec(), signal)).toEqual({ admitted: true });
      });

      it("lists every engine version, with the reason where one cannot run", async () => {
        const images = await subject.provider.images(signal);
        expect(images.map(({ engine, version }) => `${engine} ${version}`)).toContain("postgresql 17");
        for (const image of images) expect(image.available || (image.reason ?? "").length > 0).toBe(true);
      });
    },
  );
}
