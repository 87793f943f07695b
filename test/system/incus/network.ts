import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { addressOf, privateConnection, queryOnce } from "@holdfast/testing/api/clients.ts";
import { listeners } from "@holdfast/testing/machines/incus-machines.ts";
import {
  type Attempt,
  connectFrom,
  countPackets,
  linkOf,
  createClientNamespace,
  type ClientNamespace,
} from "@holdfast/testing/network/client-namespace.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { IncusUnderTest } from "./incus-under-test.ts";

const run = promisify(execFile);

/** Addresses, their clients, and the machine's own targets. */
export function networkCases(fixture: IncusUnderTest): void {
  describe("its network", () => {
    it("answers over TLS at its public address by name, and at its private one by the private name", async () => {
      const { connection, password } = fixture.main;
      const [publicAddress, privateAddress] = await fixture.addressesOf(fixture.main);
      expect(publicAddress).toMatch(/^100\./);
      expect(privateAddress).toMatch(/^10\./);
      const sql =
        "SELECT host(inet_server_addr()) AS at, (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()) AS tls";
      expect(await queryOnce(fixture.platform, connection, { password }, sql)).toEqual([
        { at: publicAddress, tls: true },
      ]);
      expect(await queryOnce(fixture.platform, privateConnection(connection), { password }, sql)).toEqual([
        { at: privateAddress, tls: true },
      ]);
      // Connections that the machine opens have its private address, to any target.
      const pid = await fixture.pidOf(fixture.main);
      for (const to of [listeners(fixture.platform).host_address, "192.0.2.1"]) {
        const { stdout } = await run("nsenter", ["--target", String(pid), "--net", "ip", "-json", "route", "get", to]);
        expect(JSON.parse(stdout)).toMatchObject([{ prefsrc: privateAddress }]);
      }
    });

    it("is reached at both addresses only from its allow-list, as soon as the list changes", async () => {
      const [guest, outsider] = await Promise.all([createClientNamespace(), createClientNamespace()]);
      const path = `/managed-services/${fixture.main.service.id}`;
      const addresses = await fixture.addressesOf(fixture.main);
      const allow = async (allowed_cidrs: readonly string[]) =>
        expectStatus(await fixture.platform.rest.patch(path, { allowed_cidrs }), 200);
      const becomes = async (client: ClientNamespace, expected: Attempt) =>
        waitUntil(`the service is ${expected} to ${client.address}`, async () => {
          const attempts = await Promise.all(addresses.map((address) => client.connect(address, 5432)));
          return attempts.every((attempt) => attempt === expected);
        });
      const refuses = async (client: ClientNamespace, port: number) => {
        for (const address of addresses) expect(await client.connect(address, port)).toBe("refused");
      };
      const before = fixture.main.service.allowed_cidrs;
      try {
        await refuses(guest, 5432);
        await allow([...before, `${guest.address}/32`]);
        await becomes(guest, "open");
        await refuses(outsider, 5432);
        // Another port of the machine, the platform's API: neither is opened by the list.
        await refuses(guest, 22);
        await allow(before);
        await becomes(guest, "refused");
      } finally {
        await Promise.all([guest.close(), outsider.close()]);
      }
    });

    it("blocks the host's other ports by either family, and packets with another machine's address", async () => {
      const pid = await fixture.pidOf(fixture.main);
      const { host_address: host, agents_port, number } = listeners(fixture.platform);
      const address = await addressOf(fixture.platform, fixture.main.connection.host);
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
        // The host forwards by neither address family.
        expect(readFileSync(`/proc/sys/net/ipv6/conf/${link}/forwarding`, "utf8").trim()).toBe("0");
      } finally {
        listener.close();
      }
      // Its ARP entry is permanent, so that it does not query for an address without an owner.
      const link = await linkOf(address);
      const arpAddress = readFileSync(`/sys/class/net/${link}/address`, "utf8").trim();
      const ip = (...args: string[]) => run("nsenter", ["--target", String(pid), "--net", "ip", ...args]);
      await ip("neigh", "replace", host, "lladdr", arpAddress, "dev", "eth0", "nud", "permanent");
      for (const spoofedAddress of [
        `10.${number}.200.7`,
        address.replace(/\d+$/, (last) => String(Number(last) + 5)),
      ]) {
        await ip("address", "add", `${spoofedAddress}/32`, "dev", "eth0");
        await ip("route", "replace", `${host}/32`, "dev", "eth0", "src", spoofedAddress);
        const spoofed = await countPackets(`hf_test_spoof_${number}`, `ip saddr ${spoofedAddress}`);
        try {
          expect(await connectFrom(pid, host, agents_port)).toBe("silent");
          const { arrived, passed } = await spoofed.read();
          expect(arrived).toBeGreaterThan(0);
          expect(passed).toBe(0);
        } finally {
          await spoofed.close();
        }
        await ip("route", "replace", `${host}/32`, "dev", "eth0");
        await ip("address", "delete", `${spoofedAddress}/32`, "dev", "eth0");
      }
      expect(await connectFrom(pid, host, agents_port)).toBe("open");
    });

    it("leaves other rules of the host alone, and has its own in one table", async () => {
      const foreignTable = `hf_test_foreign_${listeners(fixture.platform).number}`;
      const nft = async (...args: string[]) => (await run("nft", args)).stdout;
      await nft("add", "table", "inet", foreignTable);
      try {
        await nft(
          "add",
          "chain",
          "inet",
          foreignTable,
          "forward",
          "{ type filter hook forward priority 10; policy accept; }",
        );
        await nft("add", "rule", "inet", foreignTable, "forward", "ip", "saddr", "192.0.2.1", "drop");
        const rules = await nft("list", "table", "inet", foreignTable);
        const path = `/managed-services/${fixture.main.service.id}`;
        const client = "198.51.100.9/32";
        const ownTable = `holdfast_${listeners(fixture.platform).number}`;
        const allowed_cidrs = [...fixture.main.service.allowed_cidrs, client];
        expectStatus(await fixture.platform.rest.patch(path, { allowed_cidrs }), 200);
        await waitUntil("the rule exists", async () =>
          (await nft("list", "table", "inet", ownTable)).includes("198.51.100.9"),
        );
        expect(await nft("list", "table", "inet", foreignTable)).toBe(rules);
        expectStatus(
          await fixture.platform.rest.patch(path, { allowed_cidrs: fixture.main.service.allowed_cidrs }),
          200,
        );
      } finally {
        await nft("delete", "table", "inet", foreignTable);
      }
    });
  });
}
