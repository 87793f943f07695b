import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addressOf, commandOnce, inside, openPostgresql, openValkey, queryOnce } from "../support/clients.ts";
import { type ForeignIncus, startForeignIncus } from "../support/foreign-incus.ts";
import { firstProcessOf, incusMissing, listeners, openIncusOf } from "../support/incus-machines.ts";
import { environmentsIn, filesWith, runInside } from "../support/machine-inside.ts";
import { type Platform, startPlatform } from "../support/platform.ts";
import { killAtOnce } from "../support/platform-processes.ts";
import { createReleaseDirectory } from "../support/release-directory.ts";
import type { OperationJson } from "../support/service-json.ts";
import { asOperator } from "../support/organizations.ts";
import { writeRows } from "../faults/acknowledged-writer.ts";
import { AgentRolloutService } from "@holdfast/proto/holdfast/admin/v1/agent_rollout_pb.ts";
import { testPublicNetwork } from "../support/public-network.ts";
import {
  type Attempt,
  connectFrom,
  countPackets,
  linkOf,
  makePlace,
  type NetworkPlace,
} from "../support/network-place.ts";
import { type ChangingImages, createChangingImages } from "../support/changing-images.ts";
import { createServices, expectStatus, type RunningService, type Services } from "../support/services.ts";
import { waitUntil } from "../support/wait-until.ts";

const run = promisify(execFile);
const missing = await incusMissing();

/** One that is there already and has others' things in it; the tests of faults have one of the platform's own. */
describe.skipIf(missing !== undefined)(
  `a platform with machines of Incus${missing === undefined ? "" : ` (skipped: ${missing})`}`,
  () => {
    let daemon: ForeignIncus;
    let before: Record<string, unknown>;
    let platform: Platform;
    let removed = false;
    let services: Services;
    let main: RunningService;
    let images: ChangingImages;
    const code = createReleaseDirectory();

    beforeAll(async () => {
      daemon = await startForeignIncus();
      before = await daemon.everything();
      const network = await testPublicNetwork("routed");
      images = createChangingImages({ looksOlder: false });
      code.put("0.3.0");
      platform = await startPlatform({
        flags: ["--provider", "incus", "--incus-socket", daemon.socket, "--public-addresses", network],
        environment: {
          HOLDFAST_SAMPLE_INTERVAL_MS: "1000",
          HOLDFAST_CACHE: images.cache,
          HOLDFAST_AGENT_CODE: code.directory,
          HOLDFAST_AGENT_UPGRADE: "on",
          HOLDFAST_AGENT_UPGRADE_SHARES: "100",
          HOLDFAST_AGENT_UPGRADE_SOAK_S: "1",
        },
      });
      services = createServices(platform);
      // The very first machine waits for the image.
      const { id } = await services.create("main");
      await services.settled(id, "Running", 150_000);
      main = await services.open(id);
    });
    afterAll(async () => {
      if (!removed) await platform?.remove();
      await daemon?.close();
      images?.close();
      code.remove();
    });

    async function pidOf({ service }: RunningService): Promise<number> {
      const incus = openIncusOf(platform);
      try {
        return await firstProcessOf(incus, service.nodes[0]?.id ?? "");
      } finally {
        await incus.close();
      }
    }

    /** Public and private, as names lead there. */
    const addressesOf = ({ connection }: RunningService) =>
      Promise.all([addressOf(platform, connection.host), addressOf(platform, connection.private_host)]);

    it("answers over TLS at its public address by name, at its private one by the private name, verified by each", async () => {
      const { connection, password } = main;
      const [publicAddress, privateAddress] = await addressesOf(main);
      expect(publicAddress).toMatch(/^100\./);
      expect(privateAddress).toMatch(/^10\./);
      const sql =
        "SELECT host(inet_server_addr()) AS at, (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()) AS tls";
      expect(await queryOnce(platform, connection, { password }, sql)).toEqual([{ at: publicAddress, tls: true }]);
      expect(await queryOnce(platform, inside(connection), { password }, sql)).toEqual([
        { at: privateAddress, tls: true },
      ]);
      // What the machine itself begins has its private address, wherever it leads.
      const pid = await pidOf(main);
      for (const to of [listeners(platform).host_address, "192.0.2.1"]) {
        const { stdout } = await run("nsenter", ["--target", String(pid), "--net", "ip", "-json", "route", "get", to]);
        expect(JSON.parse(stdout)).toMatchObject([{ prefsrc: privateAddress }]);
      }
    });

    it("tells all that its machine does, its own network among it", async () => {
      const names = ["cpu", "memory", "disk", "disk_iops", "network_in", "network_out"];
      const path = `/managed-services/${main.service.id}/metrics?period=15m&${names.map((name) => `metric=${name}`).join("&")}`;
      type Told = { series: { metric: string; points: [number, number, number, number][] }[]; absent: object[] };
      const mostOf = ({ series }: Told) =>
        new Map(series.map(({ metric, points }) => [metric, Math.max(...points.map(([, , , value]) => value))]));
      // A machine that is left alone has moments without a byte to its disk: the next sample shows its heartbeat.
      const told = await waitUntil("each metric has been more than nothing", async () => {
        const { json } = expectStatus(await platform.rest.get<Told>(path), 200);
        const most = mostOf(json);
        return names.every((name) => (most.get(name) ?? 0) > 0) ? json : undefined;
      });
      expect(told.absent).toEqual([]);
      const most = mostOf(told);
      expect(["cpu", "memory", "disk"].filter((name) => (most.get(name) ?? 0) > 100)).toEqual([]);
    });

    it("is reached at both its addresses from where its allow-list says, and from nowhere else, as soon as the list says so", async () => {
      const [guest, stranger] = await Promise.all([makePlace("in", 0), makePlace("out", 1)]);
      const path = `/managed-services/${main.service.id}`;
      const addresses = await addressesOf(main);
      const allow = async (allowed_cidrs: readonly string[]) =>
        expectStatus(await platform.rest.patch(path, { allowed_cidrs }), 200);
      const becomes = async (place: NetworkPlace, wanted: Attempt) =>
        waitUntil(`the service is ${wanted} to ${place.address}`, async () => {
          const attempts = await Promise.all(addresses.map((address) => place.connect(address, 5432)));
          return attempts.every((attempt) => attempt === wanted);
        });
      const refuses = async (place: NetworkPlace, port: number) => {
        for (const address of addresses) expect(await place.connect(address, port)).toBe("refused");
      };
      const before = main.service.allowed_cidrs;
      try {
        await refuses(guest, 5432);
        await allow([...before, `${guest.address}/32`]);
        await becomes(guest, "open");
        await refuses(stranger, 5432);
        // Another port of the machine, the platform's API: neither is the list's to open.
        await refuses(guest, 22);
        await allow(before);
        await becomes(guest, "refused");
      } finally {
        await Promise.all([guest.close(), stranger.close()]);
      }
    });

    it("has a Valkey that answers by name over TLS, keeps its values over a stop, and is no PostgreSQL's to reach", async () => {
      const cache = await services.createRunning("cache", { database_type: "valkey" });
      const ask = (command: string, ...args: string[]) =>
        commandOnce(platform, cache.connection, { password: cache.password }, command, ...args);
      expect(await ask("SET", "greeting", "hello")).toBe("OK");
      await expect(
        openValkey(platform, cache.connection, { password: cache.password, verify: "address" }),
      ).rejects.toThrow("altnames");
      await services.verb(cache.service.id, "stop");
      await services.verb(cache.service.id, "start");
      expect(await ask("GET", "greeting")).toBe("hello");

      // A machine and its peers, its controllers and the names: nothing else.
      const { host_address: host, agents_port, dns_port, api_port } = listeners(platform);
      const [pid, pidOfCache] = [await pidOf(main), await pidOf(cache)];
      expect(await connectFrom(pid, host, agents_port)).toBe("open");
      expect(await connectFrom(pid, host, dns_port)).toBe("open");
      expect(await connectFrom(pid, host, api_port)).toBe("refused");
      for (const address of await addressesOf(cache))
        expect(await connectFrom(pid, address, cache.connection.port)).toBe("refused");

      // Each is root of other users of the host, and knows nothing of the other.
      const [own, others] = [
        await runInside(pid, "cat", "/proc/1/uid_map"),
        readFileSync(`/proc/${pidOfCache}/uid_map`, "utf8"),
      ];
      const [ofMain = 0, ofCache = 0] = [readFileSync(`/proc/${pid}/uid_map`, "utf8"), others].map((map) =>
        Number(map.trim().split(/\s+/)[1]),
      );
      expect(own).toMatch(/^\s*0\s/);
      expect(ofMain).toBeGreaterThanOrEqual(100_000);
      expect(ofCache).not.toBe(ofMain);
      const id = cache.service.nodes[0]?.id ?? "none";
      expect(await filesWith(pidOfCache, [id])).not.toEqual([]);
      expect(await filesWith(pid, [id])).toEqual([]);
      expect(readFileSync(`/proc/${pid}/mountinfo`, "utf8")).not.toContain(id);
      await services.delete(cache.service.id);
    });

    it("keeps a machine from the host's other ports by either family, and from speaking with another's address", async () => {
      const pid = await pidOf(main);
      const { host_address: host, agents_port, number } = listeners(platform);
      const address = await addressOf(platform, main.connection.host);
      const listener = createServer((socket) => socket.destroy()).listen(0, "::");
      try {
        await new Promise((resolve) => listener.once("listening", resolve));
        const { port } = listener.address() as { port: number };
        expect(await connectFrom(process.pid, host, port)).toBe("open");
        expect(await connectFrom(pid, host, port)).toBe("refused");
        const link = await linkOf(address);
        const ofLink = (networkInterfaces()[link] ?? []).filter(({ family }) => family === "IPv6");
        for (const each of ofLink) {
          expect(await connectFrom(process.pid, `${each.address}%${link}`, port)).toBe("open");
          expect(await connectFrom(pid, `${each.address}%eth0`, port)).not.toBe("open");
        }
        // By no family is there a way on from the host.
        expect(readFileSync(`/proc/sys/net/ipv6/conf/${link}/forwarding`, "utf8").trim()).toBe("0");
      } finally {
        listener.close();
      }
      // Its neighbour is known, so that it need not ask by a name that nobody answers.
      const link = await linkOf(address);
      const neighbour = readFileSync(`/sys/class/net/${link}/address`, "utf8").trim();
      const ip = (...args: string[]) => run("nsenter", ["--target", String(pid), "--net", "ip", ...args]);
      await ip("neighbour", "replace", host, "lladdr", neighbour, "dev", "eth0", "nud", "permanent");
      for (const stranger of [`10.${number}.200.7`, address.replace(/\d+$/, (last) => String(Number(last) + 5))]) {
        await ip("address", "add", `${stranger}/32`, "dev", "eth0");
        await ip("route", "replace", `${host}/32`, "dev", "eth0", "src", stranger);
        const spoofed = await countPackets("hf_test_spoof", `ip saddr ${stranger}`);
        try {
          expect(await connectFrom(pid, host, agents_port)).toBe("silent");
          const { arrived, passed } = await spoofed.read();
          expect(arrived).toBeGreaterThan(0);
          expect(passed).toBe(0);
        } finally {
          await spoofed.close();
        }
        await ip("route", "replace", `${host}/32`, "dev", "eth0");
        await ip("address", "delete", `${stranger}/32`, "dev", "eth0");
      }
      expect(await connectFrom(pid, host, agents_port)).toBe("open");
    });

    it("leaves others' rules of the host alone, and has its own in one table", async () => {
      const theirs = "hf_test_theirs";
      const nft = async (...args: string[]) => (await run("nft", args)).stdout;
      await nft("add", "table", "inet", theirs);
      try {
        await nft(
          "add",
          "chain",
          "inet",
          theirs,
          "forward",
          "{ type filter hook forward priority 10; policy accept; }",
        );
        await nft("add", "rule", "inet", theirs, "forward", "ip", "saddr", "192.0.2.1", "drop");
        const rules = await nft("list", "table", "inet", theirs);
        const path = `/managed-services/${main.service.id}`;
        const place = "198.51.100.9/32";
        const own = `holdfast_${listeners(platform).number}`;
        const allowed_cidrs = [...main.service.allowed_cidrs, place];
        expectStatus(await platform.rest.patch(path, { allowed_cidrs }), 200);
        await waitUntil("the rule is there", async () =>
          (await nft("list", "table", "inet", own)).includes("198.51.100.9"),
        );
        expect(await nft("list", "table", "inet", theirs)).toBe(rules);
        expectStatus(await platform.rest.patch(path, { allowed_cidrs: main.service.allowed_cidrs }), 200);
      } finally {
        await nft("delete", "table", "inet", theirs);
      }
    });

    it("has no credential of the platform, of its store or of Incus on a machine", async () => {
      const pid = await pidOf(main);
      const keys = join(platform.directory, "keys");
      const { admin } = platform;
      const secrets = [admin.password, admin.api_key_secret, admin.token];
      for (const name of readdirSync(keys)) {
        const text = readFileSync(join(keys, name), "utf8").trim();
        secrets.push(...(name.endsWith(".json") ? (text.match(/[A-Za-z0-9+/_=-]{24,}/g) ?? []) : [text]));
      }
      const socket = listeners(platform).incus_socket ?? "";
      expect(await filesWith(pid, [main.service.nodes[0]?.id ?? "none"])).not.toEqual([]);
      expect(await filesWith(pid, [...secrets.filter((each) => !each.includes("\n")), socket])).toEqual([]);
      const environments = await environmentsIn(pid);
      expect(environments).toContain("HOLDFAST_MACHINE_ID");
      expect([...secrets, socket].filter((each) => environments.includes(each))).toEqual([]);
      // What Incus could give a container to speak to it by.
      expect(
        await runInside(pid, "sh", "-c", "ls -d /dev/incus /dev/lxd /var/lib/incus 2>/dev/null || echo none"),
      ).toBe("none");
    });

    it("keeps its data over a stop of the service and a restart of the platform", async () => {
      const access = { password: main.password };
      await queryOnce(platform, main.connection, access, "CREATE TABLE kept AS SELECT 42 AS value");
      await services.verb(main.service.id, "stop");
      // Nobody has its public address now: whoever answers for the world behind this host's gateway is no PostgreSQL.
      await expect(openPostgresql(platform, main.connection, access)).rejects.toThrow(
        /ECONN|UNREACH|timeout|terminated|establishing an SSL connection/,
      );
      await platform.stop();
      await platform.start();
      await services.verb(main.service.id, "start");
      const rows = await queryOnce(platform, main.connection, access, "SELECT value FROM kept");
      expect(rows).toEqual([{ value: 42 }]);
    });

    it("gets another release of the agent while its engine runs and takes writes", async () => {
      const stop = new AbortController();
      const writer = await writeRows(platform, main, stop.signal);
      const started = async () => {
        const sql = "SELECT pg_postmaster_start_time()::text AS at";
        return queryOnce(platform, main.connection, { password: main.password }, sql);
      };
      const before = await started();
      const digest = code.put("0.3.1");
      for (const pid of platform.processes().controllers) killAtOnce(pid);
      await waitUntil("it has the release", () =>
        asOperator(platform, AgentRolloutService, async (rpcs) => {
          const now = await rpcs.getAgentRollout({});
          return now.digest === digest && now.state === "Completed" && now.current === 1;
        }),
      );
      stop.abort();
      await writer.done;
      expect(await writer.missing()).toEqual([]);
      expect(await started()).toEqual(before);
    }, 180_000);

    describe("is given another image", () => {
      type Shown = { readonly image: string; readonly updates: readonly { readonly id: string }[] };
      const path = () => `/managed-services/${main.service.id}/maintenance`;
      const shown = async () => expectStatus(await platform.rest.get<Shown>(path()), 200).json;
      const kept = () => queryOnce(platform, main.connection, { password: main.password }, "SELECT value FROM kept");

      /** Has the image applied, and answers how that ended. */
      async function apply(image: string): Promise<OperationJson> {
        await images.choose(image);
        await waitUntil("it is pending", async () => (await shown()).updates.some(({ id }) => id === image));
        const { id } = expectStatus(await platform.rest.post<OperationJson>(`${path()}/apply`), 202).json;
        const ended = async () => {
          const { json } = await platform.rest.get<OperationJson>(`/operations/${id}`);
          return json.finished_at !== null && json;
        };
        const describe = () => services.describe(main.service.id);
        const operation = await waitUntil("it is over", ended, { withinMs: 180_000, describe });
        await services.settled(main.service.id, "Running");
        return operation;
      }

      it("under its data, which it keeps", async () => {
        expect(await apply(images.good)).toMatchObject({ status: "completed" });
        expect(await shown()).toMatchObject({ image: images.good, updates: [] });
        expect(await kept()).toEqual([{ value: 42 }]);
      }, 240_000);

      it("which is taken back when its engine does not start, and keeps its data", async () => {
        expect((await apply(images.broken)).error).toMatchObject({ code: "taken_back_engine_failed" });
        expect((await shown()).image).toBe(images.good);
        expect(await kept()).toEqual([{ value: 42 }]);
      }, 240_000);
    });

    it("takes all that is its own from the daemon with clean, and nothing else", async () => {
      expect(await daemon.everything()).not.toEqual(before);
      removed = true;
      await platform.remove();
      expect(await daemon.everything()).toEqual(before);
    });
  },
);
