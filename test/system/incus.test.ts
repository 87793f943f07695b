import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addressOf, openPostgresql, queryOnce } from "../support/clients.ts";
import { resolveName } from "../support/dns-query.ts";
import { firstProcessOf, incusMissing, listeners, openIncusOf } from "../support/incus-machines.ts";
import { type Platform, startPlatform } from "../support/platform.ts";
import { type Attempt, connectFrom, makePlace, type NetworkPlace } from "../support/network-place.ts";
import { createServices, expectStatus, type RunningService, type Services } from "../support/services.ts";
import { waitUntil } from "../support/wait-until.ts";

const missing = await incusMissing();

describe.skipIf(missing !== undefined)(
  `a platform with machines of Incus${missing === undefined ? "" : ` (skipped: ${missing})`}`,
  () => {
    let platform: Platform;
    let services: Services;
    let main: RunningService;

    beforeAll(async () => {
      platform = await startPlatform({ flags: ["--provider", "incus"] });
      services = createServices(platform);
      // The very first machine waits for the image.
      const { id } = await services.create("main");
      await services.settled(id, "Running", 150_000);
      main = await services.open(id);
    });
    afterAll(() => platform?.remove());

    it("answers a query over TLS with the certificate verified against its name, at the machine's own address", async () => {
      const [row] = await queryOnce<{ address: string; tls: boolean }>(
        platform,
        main.connection,
        { password: main.password },
        "SELECT host(inet_server_addr()) AS address, (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()) AS tls",
      );
      expect(row?.tls).toBe(true);
      expect(row?.address).toMatch(/^10\./);
      expect(await resolveName(platform.admin.dns_server, main.connection.host)).toEqual([row?.address]);
    });

    it("is reached from where its allow-list says, and from nowhere else, as soon as the list says so", async () => {
      const [inside, outside] = await Promise.all([makePlace("in", 0), makePlace("out", 1)]);
      const path = `/managed-services/${main.service.id}`;
      const address = await addressOf(platform, main.connection.host);
      const allow = async (allowed_cidrs: readonly string[]) =>
        expectStatus(await platform.rest.patch(path, { allowed_cidrs }), 200);
      const becomes = async (place: NetworkPlace, wanted: Attempt) =>
        waitUntil(
          `the service is ${wanted} to ${place.address}`,
          async () => (await place.connect(address, 5432)) === wanted,
        );
      const before = main.service.allowed_cidrs;
      try {
        expect(await inside.connect(address, 5432)).toBe("refused");
        await allow([...before, `${inside.address}/32`]);
        await becomes(inside, "open");
        expect(await outside.connect(address, 5432)).toBe("refused");
        // Another port of the machine, the platform's API: neither is the list's to open.
        expect(await inside.connect(address, 22)).toBe("refused");
        await allow(before);
        await becomes(inside, "refused");
      } finally {
        await Promise.all([inside.close(), outside.close()]);
      }
    });

    it("lets a machine reach the controllers and the names, and neither the host nor another machine", async () => {
      const other = await services.createRunning("other");
      const { host_address: host, agents_port, dns_port, api_port } = listeners(platform);
      const incus = openIncusOf(platform);
      const pid = await firstProcessOf(incus, main.service.nodes[0]?.id ?? "");
      await incus.close();
      expect(await connectFrom(pid, host, agents_port)).toBe("open");
      expect(await connectFrom(pid, host, dns_port)).toBe("open");
      expect(await connectFrom(pid, host, api_port)).toBe("refused");
      expect(await connectFrom(pid, await addressOf(platform, other.connection.host), 5432)).toBe("refused");
      expect(await connectFrom(pid, await addressOf(platform, main.connection.host), 5432)).toBe("open");
      await services.delete(other.service.id);
    });

    it("keeps its data over a stop of the service and a restart of the platform", async () => {
      const access = { password: main.password };
      await queryOnce(platform, main.connection, access, "CREATE TABLE kept AS SELECT 42 AS value");
      await services.verb(main.service.id, "stop");
      await expect(openPostgresql(platform, main.connection, access)).rejects.toThrow();
      await platform.stop();
      await platform.start();
      await services.verb(main.service.id, "start");
      const rows = await queryOnce(platform, main.connection, access, "SELECT value FROM kept");
      expect(rows).toEqual([{ value: 42 }]);
    });
  },
);
