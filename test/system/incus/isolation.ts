import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { commandOnce, openValkey } from "@holdfast/testing/api/clients.ts";
import { listeners } from "@holdfast/testing/machines/incus-machines.ts";
import { environmentsIn, filesWith, runInside } from "@holdfast/testing/machines/machine-inside.ts";
import { connectFrom } from "@holdfast/testing/network/client-namespace.ts";
import type { IncusUnderTest } from "./incus-under-test.ts";

/** Cases of isolation: a machine cannot read data of other machines or of the platform. */
export function isolationCases(fixture: IncusUnderTest): void {
  describe("its machines", () => {
    it("has a Valkey with TLS by name that retains its values and no PostgreSQL reaches", async () => {
      const cache = await fixture.services.createRunning("cache", { database_type: "valkey" });
      const command = (command: string, ...args: string[]) =>
        commandOnce(fixture.platform, cache.connection, { password: cache.password }, command, ...args);
      expect(await command("SET", "greeting", "hello")).toBe("OK");
      await expect(
        openValkey(fixture.platform, cache.connection, { password: cache.password, verify: "address" }),
      ).rejects.toThrow("altnames");
      await fixture.services.verb(cache.service.id, "stop");
      await fixture.services.verb(cache.service.id, "start");
      expect(await command("GET", "greeting")).toBe("hello");

      // A machine reaches its peers, its controllers and DNS: nothing else.
      const { host_address: host, agents_port, dns_port, api_port } = listeners(fixture.platform);
      const [pid, pidOfCache] = [await fixture.pidOf(fixture.main), await fixture.pidOf(cache)];
      expect(await connectFrom(pid, host, agents_port)).toBe("open");
      expect(await connectFrom(pid, host, dns_port)).toBe("open");
      expect(await connectFrom(pid, host, api_port)).toBe("refused");
      for (const address of await fixture.addressesOf(cache))
        expect(await connectFrom(pid, address, cache.connection.port)).toBe("refused");

      // Each machine's root has other user ids on the host, and no access to the other machine.
      const [ownMachine, otherMachines] = [
        await runInside(pid, "cat", "/proc/1/uid_map"),
        readFileSync(`/proc/${pidOfCache}/uid_map`, "utf8"),
      ];
      const [ofMain = 0, ofCache = 0] = [readFileSync(`/proc/${pid}/uid_map`, "utf8"), otherMachines].map((map) =>
        Number(map.trim().split(/\s+/)[1]),
      );
      expect(ownMachine).toMatch(/^\s*0\s/);
      expect(ofMain).toBeGreaterThanOrEqual(100_000);
      expect(ofCache).not.toBe(ofMain);
      const id = cache.service.nodes[0]?.id ?? "none";
      expect(await filesWith(pidOfCache, [id])).not.toEqual([]);
      expect(await filesWith(pid, [id])).toEqual([]);
      expect(readFileSync(`/proc/${pid}/mountinfo`, "utf8")).not.toContain(id);
      await fixture.services.delete(cache.service.id);
    });

    it("has no credential of the platform, of its store or of Incus in a machine", async () => {
      const pid = await fixture.pidOf(fixture.main);
      const keys = join(fixture.platform.directory, "keys");
      const { admin } = fixture.platform;
      const secrets = [admin.password, admin.api_key_secret, admin.token];
      for (const name of readdirSync(keys)) {
        const text = readFileSync(join(keys, name), "utf8").trim();
        secrets.push(...(name.endsWith(".json") ? (text.match(/[A-Za-z0-9+/_=-]{24,}/g) ?? []) : [text]));
      }
      const socket = listeners(fixture.platform).incus_socket ?? "";
      expect(await filesWith(pid, [fixture.main.service.nodes[0]?.id ?? "none"])).not.toEqual([]);
      expect(await filesWith(pid, [...secrets.filter((each) => !each.includes("\n")), socket])).toEqual([]);
      const environments = await environmentsIn(pid);
      expect(environments).toContain("HOLDFAST_MACHINE_ID");
      expect([...secrets, socket].filter((each) => environments.includes(each))).toEqual([]);
      // Interfaces that Incus could offer to a container.
      expect(
        await runInside(pid, "sh", "-c", "ls -d /dev/incus /dev/lxd /var/lib/incus 2>/dev/null || echo none"),
      ).toBe("none");
    });
  });
}
