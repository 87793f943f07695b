import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresql, queryOnce } from "../support/clients.ts";
import { resolveName } from "../support/dns-query.ts";
import { incusMissing } from "../support/incus-machines.ts";
import { type Platform, startPlatform } from "../support/platform.ts";
import { createServices, type RunningService, type Services } from "../support/services.ts";

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
