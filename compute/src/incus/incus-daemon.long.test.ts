import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  daemonOf,
  firstProcessOf,
  incusMissing,
  startTestIncus,
  type TestIncus,
} from "@holdfast/testing/machines/incus-machines.ts";
import { testMachineSpec } from "@holdfast/testing/machines/machine-spec.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { preparedEngines } from "../local/prepared-disks.ts";
import { instanceUsers, instanceName } from "./instance-config.ts";
import { createIncusResources, ownerOf, removeIncusResources } from "./incus-resources.ts";
import { openIncus } from "./open-incus.ts";

const run = promisify(execFile);
const signal = AbortSignal.timeout(600_000);
const gib = 1024 ** 3;
const piece = gib / 16;
const missing = await incusMissing();
const enrollment = { installationId: "test", controllers: ["127.0.0.1:1"], caFingerprint: "00", token: "t" };

describe.skipIf(missing !== undefined)(
  `a daemon of Incus${missing === undefined ? "" : ` (skipped: ${missing})`}`,
  () => {
    let machines: TestIncus;
    let files: string;
    let url = "";
    let serverCertificate = "";

    beforeAll(async () => {
      files = await mkdtemp(join(tmpdir(), "holdfast-incus-client-"));
      machines = await startTestIncus({
        command: ["/usr/bin/perl", "-e", "$SIG{TERM}=sub{exit};sleep(1)while(1);"],
        tiers: ["maxiops", "standard", "small"],
        pools: { standard: "plain", small: "small" },
        // The tests trigger the preparation.
        preparedDisks: { kinds: preparedEngines, count: 1, idleMs: 3_600_000 },
      });
    });
    afterAll(async () => {
      await machines?.close();
      await rm(files, { recursive: true, force: true });
    });

    async function insideOf(id: string, ...argv: string[]): Promise<string> {
      const enter = ["-t", String(await firstProcessOf(machines.incus, id)), "-m", "-p", "-U", ...argv];
      return (await run("nsenter", enter)).stdout.trim();
    }

    /** Settings of a client with a new certificate, or with the given one. */
    async function client(
      name: string,
      more: { readonly endsAt?: number; readonly server?: string; readonly token?: string },
    ) {
      const { cert, key } = await createTestCertificate(more.endsAt);
      const write = async (ending: string, text: string | undefined) => {
        if (text === undefined) return "";
        await writeFile(join(files, `${name}.${ending}`), text, { mode: 0o600 });
        return join(files, `${name}.${ending}`);
      };
      const settings = {
        incusSocket: "",
        incusProject: machines.resources.project,
        incusUrl: url,
        incusCert: await write("crt", cert),
        incusKey: await write("key", key),
        incusServerCert: await write("server", more.server),
        incusTokenFile: await write("token", more.token),
      };
      return { cert, settings };
    }

    /** Output of `incus config trust add NAME`. */
    async function newToken(name: string): Promise<string> {
      const body = { name, type: "client", token: true };
      const { metadata } = await machines.incus.call<{ metadata: Record<string, unknown> }>(
        "POST",
        "/1.0/certificates",
        signal,
        body,
      );
      const { secret, fingerprint, addresses } = metadata;
      return Buffer.from(JSON.stringify({ client_name: name, fingerprint, addresses, secret })).toString("base64");
    }

    it("imports an image after an interrupted import, and after a kill during one", async () => {
      const impatient = new AbortController();
      const first = machines.provider.prepare(impatient.signal);
      // Time: the moment of the interruption.
      setTimeout(() => impatient.abort(new Error("enough")), 500);
      await expect(first).rejects.toThrow("enough");
      const second = machines.provider.prepare(signal).catch((error: Error) => error.name);
      // Time: the moment of the kill.
      await new Promise((resolve) => setTimeout(resolve, 500));
      await machines.killDaemon();
      expect(["HostUnreachable", "IncusError", "ComputeFailure", undefined]).toContain(await second);
      // Two concurrent controllers prepare one disk.
      await Promise.all([machines.provider.prepare(signal), machines.another().prepare(signal)]);
      expect(await machines.incus.call<string[]>("GET", "/1.0/images", signal)).toHaveLength(1);
      expect(await machines.incus.call<string[]>("GET", "/1.0/instances", signal)).toEqual([]);
    });

    it("gives a machine a prepared disk with the owner of the machine's engine", async () => {
      await machines.provider.refill(signal);
      const ready = () => readdirSync(join(machines.layout.preparedDisks, "postgresql-17"));
      expect(ready()).toHaveLength(1);
      const spec = testMachineSpec({ diskBytes: 2 * gib });
      await machines.provider.create(spec, signal);
      expect(ready()).toEqual([]);
      expect(await machines.provider.get(spec.id, signal)).toMatchObject({ hasData: false, diskBytes: 2 * gib });
      await machines.provider.start(spec.id, enrollment, signal);
      const owners = await insideOf(spec.id, "stat", "-c", "%u:%g", "/data", "/data/postgresql/PG_VERSION");
      const owner = `${instanceUsers.engine}:${instanceUsers.engine}`;
      expect(owners.split("\n")).toEqual([owner, owner]);
      const [blocks = 0, size = 0] = (await insideOf(spec.id, "stat", "-f", "-c", "%b %S", "/data"))
        .split(" ")
        .map(Number);
      expect((blocks * size) / gib).toBeCloseTo(2, 0);
      const another = testMachineSpec();
      await machines.provider.create(another, signal);
      await machines.provider.start(another.id, enrollment, signal);
      expect(await insideOf(another.id, "ls", "/data")).toBe("");
      for (const { id } of [spec, another]) await machines.provider.destroy(id, signal);
    });

    it("accepts a client over HTTPS by a one-time token, then by its certificate", async () => {
      const [port = 0] = await freePorts(1);
      await machines.incus.call("PATCH", "/1.0", signal, { config: { "core.https_address": `127.0.0.1:${port}` } });
      url = `https://127.0.0.1:${port}`;
      const about = await machines.incus.call<{ environment: { certificate: string } }>("GET", "/1.0", signal);
      serverCertificate = about.environment.certificate;
      const token = await newToken("one");
      const { settings } = await client("one", { token });
      const incus = await openIncus(settings, silentLog);
      const provider = machines.another(incus);
      const seen = new Set<string>();
      const watch = provider.watch((id) => seen.add(id));
      const spec = testMachineSpec();
      expect(await provider.create(spec, signal)).toMatchObject({ state: "stopped" });
      await provider.start(spec.id, enrollment, signal);
      await expect.poll(() => seen.has(spec.id)).toBe(true);
      watch.close();
      await provider.destroy(spec.id, signal);
      expect(await machines.provider.get(spec.id, signal)).toBeUndefined();
      await provider.close();
      // The daemon trusts the client since the first connection, and is pinned by its certificate.
      const later = { ...settings, incusTokenFile: "", incusServerCert: join(files, "server.crt") };
      await writeFile(later.incusServerCert, serverCertificate);
      const again = await openIncus(later, silentLog);
      expect(await again.call<string[]>("GET", "/1.0/instances", signal)).toEqual([]);
      await again.close();
      const thief = await client("thief", { token });
      await expect(openIncus(thief.settings, silentLog)).rejects.toThrow(/does not accept the token|does not trust/);
    });

    it("refuses a client that it does not trust, or whose certificate has expired", async () => {
      const outsider = await client("outsider", { server: serverCertificate });
      await expect(openIncus(outsider.settings, silentLog)).rejects.toThrow("does not trust this client's certificate");
      const expired = await client("expired", { server: serverCertificate, endsAt: Date.now() - 60_000 });
      const certificate = expired.cert.replaceAll(/-----[^-]+-----|\s/g, "");
      const trusted = machines.incus.call("POST", "/1.0/certificates", signal, { type: "client", certificate });
      await expect(trusted).rejects.toThrow(/expired|valid/);
      await expect(openIncus(expired.settings, silentLog)).rejects.toThrow(/HOLDFAST_INCUS_CERT: .* has expired on/);
    });

    it("is refused for another certificate than the pinned one, before any request", async () => {
      const other = await createTestCertificate();
      const wrong = await client("wrong", { server: other.cert });
      await expect(openIncus(wrong.settings, silentLog)).rejects.toThrow("its Incus presents another certificate");
      const fields = JSON.parse(Buffer.from(await newToken("forged"), "base64").toString()) as object;
      const forged = Buffer.from(JSON.stringify({ ...fields, fingerprint: "00".repeat(32) })).toString("base64");
      const byToken = await client("forged", { token: forged });
      await expect(openIncus(byToken.settings, silentLog)).rejects.toThrow("presents another certificate");
      const unknown = await client("unknown", {});
      await expect(openIncus(unknown.settings, silentLog)).rejects.toThrow("by what else is the daemon known");
    });

    it("admits no machine while its pool is full or cannot be written, and admits again after", async () => {
      const { pool } = machines.resources;
      const directory = join(machines.socket, "..", "storage-pools", pool);
      const filler = join(directory, "filler");
      const spec = testMachineSpec();
      const path = `/1.0/storage-pools/${pool}/resources`;
      const { space } = await machines.incus.call<{ space: { used: number; total: number } }>("GET", path, signal);
      const filled = space.total - space.used - 0.6 * gib;
      await onDaemon("fallocate", "-l", String(Math.floor(filled)), filler);
      expect(await machines.provider.admit(spec, signal)).toMatchObject({
        admitted: false,
        reason: expect.stringMatching(/pool is too full: 0\.\d GiB of 20\.0 GiB are free/),
      });
      await onDaemon("rm", filler);
      const remount = (mode: string) => onDaemon("mount", "-o", `remount,${mode}`, directory);
      await remount("ro");
      try {
        await expect(machines.provider.create(spec, signal)).rejects.toThrow(
          /Incus could not create the machine: .*ead-only/,
        );
      } finally {
        await remount("rw");
      }
      expect(await machines.provider.get(spec.id, signal)).toMatchObject({ address: "", hasData: false });
      expect(await machines.incus.call<string[]>("GET", "/1.0/instances", signal)).toEqual([]);
      await expect.poll(() => machines.provider.admit(spec, signal)).toEqual({ admitted: true });
      expect(await machines.provider.create(spec, signal)).toMatchObject({ state: "stopped" });
      await machines.provider.destroy(spec.id, signal);
    });

    it("creates roots in the pool of the machine's tier, of any driver, and refuses when it is full", async () => {
      const make = (name: string, driver: string, config = {}) =>
        machines.incus.call("POST", "/1.0/storage-pools", signal, { name, driver, config });
      await make("plain", "dir");
      await make("small", "btrfs", { size: `${4 * gib}B` });
      for (const [storageTier, pool] of [
        ["standard", "plain"],
        ["small", "small"],
      ] as const) {
        const spec = testMachineSpec({ storageTier });
        expect(await machines.provider.admit(spec, signal)).toEqual({ admitted: true });
        await machines.provider.create(spec, signal);
        const path = `/1.0/instances/${instanceName(spec.id)}`;
        const { devices } = await machines.incus.call<{ devices: object }>("GET", path, signal);
        expect(devices).toMatchObject({ root: { pool } });
        await machines.provider.start(spec.id, enrollment, signal);
        expect(await machines.provider.get(spec.id, signal)).toMatchObject({ state: "running" });
        const another = testMachineSpec({ storageTier });
        if (pool === "small") {
          // In pieces until the pool is full: the reserve of a small pool is not known.
          const filler = join(machines.socket, "..", "storage-pools", pool, "filler");
          const script = `n=0; while fallocate -o $((n * ${piece})) -l ${piece} ${filler}; do n=$((n + 1)); done; sync -f ${filler}`;
          await onDaemon("sh", "-c", script);
          expect(await machines.provider.admit(another, signal)).toMatchObject({
            admitted: false,
            reason: expect.stringMatching(/pool is too full: 0\.\d GiB of 4\.0 GiB are free/),
          });
          // An existing machine has its root; only its disk is admitted.
          const grown = { ...spec, diskBytes: 2 * gib };
          expect(await machines.provider.admit(grown, signal)).toEqual({ admitted: true });
          expect(await machines.provider.admit(testMachineSpec(), signal)).toEqual({ admitted: true });
          await onDaemon("rm", filler);
        }
        await machines.provider.destroy(spec.id, signal);
      }
      const unknown = await machines.provider.admit(testMachineSpec({ storageTier: "tape" }), signal);
      expect(unknown).toEqual({
        admitted: false,
        reason: "This host has no storage of the tier tape: HOLDFAST_STORAGE_TIERS names maxiops, standard, small.",
      });
    });

    /** Runs a program in the daemon's mount namespace. */
    async function onDaemon(...argv: string[]): Promise<void> {
      await run("nsenter", ["-t", String(await daemonOf(machines.incus)), "-m", ...argv]);
    }

    it("retains resources with names of an installation that Holdfast did not create", async () => {
      const foreign = { project: "holdfast-99", pool: "holdfast-99", poolBytes: gib };
      await machines.incus.call("POST", "/1.0/projects", signal, { name: foreign.project, config: {} });
      await expect(ownerOf(machines.incus, foreign, signal)).rejects.toThrow(
        "has a project holdfast-99 that Holdfast did not create",
      );
      await expect(removeIncusResources(machines.incus, foreign, signal)).rejects.toThrow("holdfast-99");
      await machines.incus.call("DELETE", `/1.0/projects/${foreign.project}`, signal);
      await machines.incus.call("POST", "/1.0/storage-pools", signal, { name: foreign.pool, driver: "dir" });
      await expect(ownerOf(machines.incus, foreign, signal)).rejects.toThrow("has a storage pool holdfast-99");
      await machines.incus.call("DELETE", `/1.0/storage-pools/${foreign.pool}`, signal);
      await createIncusResources(machines.incus, foreign, "/ours", signal);
      await machines.incus.call("DELETE", `/1.0/projects/${foreign.project}`, signal);
      // The state after an interrupted removal.
      expect(await ownerOf(machines.incus, foreign, signal)).toBe("/ours");
      await removeIncusResources(machines.incus, foreign, signal);
      expect(await ownerOf(machines.incus, foreign, signal)).toBeUndefined();
    });
  },
);
