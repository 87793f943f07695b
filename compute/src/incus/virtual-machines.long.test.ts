import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, stat } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { ensureGuestBoot } from "@holdfast/image/guest-boot.ts";
import { imagesDirectory } from "@holdfast/image/node-image.ts";
import { expect, test } from "vitest";
import { guestsMissing, startTestIncus } from "@holdfast/testing/machines/incus-machines.ts";
import { testMachineSpec } from "@holdfast/testing/machines/machine-spec.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { computeConformance } from "../compute-conformance.ts";
import { type ComputeProvider, guestKernelSeries } from "../compute-provider.ts";
import type { ConformanceSubject } from "../conformance-subject.ts";
import { namesIn } from "../local/atomic-file.ts";
import { isAlive, statOf } from "../local/process-identity.ts";
import { instanceName } from "./instance-config.ts";

const signal = new AbortController().signal;
const skip = await guestsMissing();

/** A first program that prints its view to the console. The kernel passes only arguments without spaces. */
const standIn = [
  "/usr/bin/perl",
  "-e",
  '$|=1;$SIG{TERM}=sub{exit};print("up:",(-e("/etc/other-image")?"other":"first"),"\\n");sleep(1)while(1);',
];
/** The boot of a guest takes long on an emulated processor. */
const bootsWithinMs = 120_000;

async function openSubject(): Promise<ConformanceSubject> {
  // Built once for all tests.
  await ensureGuestBoot({ imagesDir: imagesDirectory(process.env) });
  const machines = await startTestIncus({ command: standIn });
  const { directory, layout, provider, publicBlock, incus } = machines;
  const path = (id: string) => `/1.0/instances/${instanceName(id)}`;
  const pidOf = async (id: string) => (await incus.call<{ pid: number }>("GET", `${path(id)}/state`, signal)).pid;
  const console = (id: string) => incus.text(`${path(id)}/console`, signal);
  const imageOf = async (id: string) => /up:(other|first)/.exec(await console(id))?.[1];

  return {
    provider,
    second: machines.another(),
    contained: true,
    publicBlock,
    // A guest is one process of its host; its processors and devices are threads.
    processesOf: async (id) => {
      const threads = await readdir(`/proc/${await pidOf(id)}/task`);
      return threads.map((thread) => `${thread} ${statOf(Number(thread))?.startTicks}`);
    },
    alive: (threads) =>
      threads.filter((each) => {
        const [pid = "0", startTicks = ""] = each.split(" ");
        return isAlive({ pid: Number(pid), startTicks });
      }),
    crash: async (id) => void process.kill(await pidOf(id), "SIGKILL"),
    reboot: (id) => machines.reboot(instanceName(id)),
    async dataBytes(id) {
      const { size } = await stat(layout.machine(id).diskFile);
      const reported = async () => {
        const last = [...(await console(id)).matchAll(/data: (\d+) blocks of (\d+)/g)].at(-1);
        return last && Number(last[1]) * Number(last[2]);
      };
      // The remainder is the file system's log.
      const grown = async () => (await reported().then((bytes = 0) => bytes > 0.9 * size && bytes)) || undefined;
      return waitUntil("the guest has made its file system as large as the disk", grown, { withinMs: bootsWithinMs });
    },
    otherImage: async () => machines.images.addImage({ packed: true }),
    // The host has nothing of a guest's root. The guest prints the image that it runs from, which is all that the suite
    // reads.
    async seen(id) {
      await waitUntil("the guest is up", async () => (await imageOf(id)) !== undefined, { withinMs: bootsWithinMs });
      return (await imageOf(id)) === "other" ? directory : join(directory, "nowhere");
    },
    // The host cannot write to a guest's disk.
    cloneTier: undefined,
    rootCanAllocate: async () => undefined,
    // A running guest keeps its limits.
    limits: async () => undefined,
    async enrollment(id) {
      const file = join(layout.machine(id).directory, "enrollment.img");
      return { content: JSON.parse(await readFile(file, "utf8")), mode: (await stat(file)).mode };
    },
    async leftovers() {
      const loops = execFileSync("losetup", ["--all"]).toString().split("\n");
      const left = [...(await namesIn(layout.machines)), ...(await namesIn(layout.addresses))];
      const instances = await incus.call<string[]>("GET", "/1.0/instances", signal);
      const machineLoops = loops.filter((line) => line.includes(`${directory}/machines`));
      return [...left.filter((name) => name !== "1"), ...instances, ...machineLoops];
    },
    close: machines.close,
  };
}

computeConformance("incus (virtual machines)", openSubject, skip, "virtual_machine");

test.skipIf(skip !== undefined)("a guest boots from its pinned kernel until the kernel is replaced", async () => {
  await ensureGuestBoot({ imagesDir: imagesDirectory(process.env) });
  const machines = await startTestIncus({ command: standIn });
  try {
    const { provider, images, incus } = machines;
    const spec = testMachineSpec({ kind: "virtual_machine" });
    const { id, guestKernel: first = "" } = await provider.create(spec, signal);
    const path = `/1.0/instances/${instanceName(id)}`;
    const enrollment = { installationId: "test", controllers: ["127.0.0.1:1"], caFingerprint: "00", token: "first" };
    /** The kernel in the command line of the machine's QEMU. */
    async function started(by: ComputeProvider): Promise<string | undefined> {
      await provider.stop(id, 1_000, signal);
      await by.start(id, enrollment, signal);
      const { pid } = await incus.call<{ pid: number }>("GET", `${path}/state`, signal);
      return /guest-[0-9a-f]{16}(?=\/kernel)/.exec(await readFile(`/proc/${pid}/cmdline`, "utf8"))?.[0];
    }
    const reported = async () => (await provider.get(id, signal))?.guestKernel;
    expect(first).toMatch(/^guest-/);
    expect(await started(provider)).toBe(first);

    const newer = images.otherGuest();
    const [newest] = (await provider.images(signal)).filter(({ engine }) => engine === guestKernelSeries.engine);
    expect(newest).toMatchObject({ ...guestKernelSeries, available: true, image: newer });
    expect(await started(machines.another())).toBe(first);
    expect(await provider.create(spec, signal)).toMatchObject({ guestKernel: first });

    await provider.guestKernels?.replace(id, newer, signal);
    await machines.another().guestKernels?.replace(id, newer, signal);
    expect(await reported()).toBe(newer);
    expect(await started(provider)).toBe(newer);
    const up = async () => (await incus.text(`${path}/console`, signal)).includes("up:first");
    await waitUntil("the guest is up", up, { withinMs: bootsWithinMs });

    await expect(provider.guestKernels?.replace(id, "guest-00000000000000ff", signal)).rejects.toThrow(
      "guest kernel guest-00000000000000ff is not on this host",
    );
    await provider.guestKernels?.replace(id, first, signal);
    expect(await started(provider)).toBe(first);
    const container = await provider.create(testMachineSpec(), signal);
    expect(container.guestKernel).toBeUndefined();
    await expect(provider.guestKernels?.replace(container.id, newer, signal)).rejects.toThrow("uses the host's kernel");
  } finally {
    await machines.close();
  }
});

/** Prints which of two ports of its host it can connect to. */
const caller = [
  "/usr/bin/perl",
  "-MIO::Socket::INET",
  "-e",
  '$|=1;$SIG{TERM}=sub{exit};print("calls:",join(",",map(IO::Socket::INET->new(PeerAddr=>$ENV{HOLDFAST_GATEWAY},PeerPort=>$_,Timeout=>5)?"open":"shut",1,2)),"\n");sleep(1)while(1);',
];

test.skipIf(skip !== undefined)(
  "a guest reaches the ports of its host that machines may call, and no other",
  async () => {
    const machines = await startTestIncus({ command: caller });
    const host = `${machines.addressBlock}.0.1`;
    const listening = [1, 2].map((port) => createServer((socket) => socket.destroy()).listen(port, host));
    try {
      await Promise.all(listening.map((server) => once(server, "listening")));
      const { id } = await machines.provider.create(testMachineSpec({ kind: "virtual_machine" }), signal);
      const enrollment = { installationId: "test", controllers: ["127.0.0.1:1"], caFingerprint: "00", token: "first" };
      await machines.provider.start(id, enrollment, signal);
      const path = `/1.0/instances/${instanceName(id)}/console`;
      const reply = async () => /calls:\S+/.exec(await machines.incus.text(path, signal))?.[0];
      expect(await waitUntil("the guest has called", reply, { withinMs: bootsWithinMs })).toBe("calls:open,shut");
      await machines.provider.destroy(id, signal);
    } finally {
      for (const server of listening) server.close();
      await machines.close();
    }
  },
);
